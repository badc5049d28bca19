"""A flavor of MLflow: models are stored as files of `save_model`, which hold no code. It takes what
any model of MLflow takes.
"""

from pairgram.mlflow.flavor import _load_pyfunc, load_model, log_model, save_model

__all__ = ["_load_pyfunc", "load_model", "log_model", "save_model"]
