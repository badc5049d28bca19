"""The campaigns by name."""

from __future__ import annotations

from .runner import Campaign

__all__ = ["BROKEN", "CAMPAIGNS"]

CAMPAIGNS: dict[str, Campaign] = {
    campaign.name: campaign
    for campaign in (
        Campaign("letor-text", "letor_text", "mutated", 500, 30_000),
        Campaign("stream-bits", "streams", "bit_flips", 400, 14_000),
        Campaign("stream-damage", "streams", "other_damage", 200, 7_000),
        Campaign("files-raw", "mutated_files", "raw", 300, 12_000),
        Campaign("files-forged", "mutated_files", "forged", 500, 20_000),
        Campaign("sparse-matrices", "matrices", "corrupted", 400, 250_000),
    )
}
BROKEN = Campaign("broken-on-purpose", "broken", "broken", 7, 7)
