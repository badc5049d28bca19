"""The campaigns by name."""

from __future__ import annotations

from . import matrices, mutated_files, streams
from .runner import Campaign

CAMPAIGNS: dict[str, Campaign] = {
    campaign.name: campaign
    for campaign in (
        Campaign("streams, one bit", streams.prepare, streams.bit_flips, 600, 14_000),
        Campaign("streams, other damage", streams.prepare, streams.other_damage, 300, 7_000),
        Campaign("files, raw", mutated_files.prepare, mutated_files.raw, 400, 12_000),
        Campaign("files, forged", mutated_files.prepare, mutated_files.forged, 800, 20_000),
        Campaign("sparse matrices", matrices.prepare, matrices.corrupted, 600, 60_000),
    )
}
