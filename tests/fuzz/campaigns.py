"""The campaigns by name."""

from __future__ import annotations

from .runner import Campaign

__all__ = ["BROKEN", "CAMPAIGNS", "TOGETHER"]

CAMPAIGNS: dict[str, Campaign] = {
    campaign.name: campaign
    for campaign in (
        Campaign("letor-text", "letor_text", "mutated", 120, 30_000),
        Campaign("stream-bits", "streams", "bit_flips", 100, 14_000),
        Campaign("stream-damage", "streams", "other_damage", 50, 7_000),
        Campaign("files-raw", "mutated_files", "raw", 80, 12_000),
        Campaign("files-forged", "mutated_files", "forged", 120, 20_000),
        Campaign("sparse-matrices", "matrices", "corrupted", 100, 250_000),
    )
}
TOGETHER = Campaign(
    "together", "together", "cases", sum(one.n_short for one in CAMPAIGNS.values()), 0
)
BROKEN = Campaign("broken-on-purpose", "broken", "broken", 7, 7)
