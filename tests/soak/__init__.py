"""Threads that fit, predict, save and load models for a long time, while processes come and go."""
