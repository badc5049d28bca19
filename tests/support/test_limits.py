"""Limits are one value for all threads, which returns to what it was."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from pairgram import RankRLS
from parts.support import limits, on_threads
from table_sources import scanned


def test_limits_inside_others_take_theirs_over(limits_of):
    before = limits.now
    with limits_of(tile=3, most_ids=4) as outer:
        assert limits.now is outer
        with pytest.raises(ZeroDivisionError), limits_of(most_ids=5):
            assert (limits.now.tile, limits.now.most_ids) == (3, 5)
            raise ZeroDivisionError
        assert limits.now is outer
    assert limits.now is before == limits.Limits()


def test_threads_that_were_there_before_see_them(set_limits):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: limits.now.tile).result() == 512
        set_limits(tile=3)
        assert pool.submit(lambda: limits.now.tile).result() == 3


def test_threads_that_read_a_table_see_them(set_limits):
    set_limits(query_bytes=8 * 5, fewest_batch_rows=1)
    table = scanned(*[(np.ones((4, 2)), np.arange(4.0), np.zeros(4, int))] * 2)
    for n_threads in (1, 2):
        with pytest.raises(ValueError, match="query 0 has more than 0 MiB of rows"):
            on_threads([n_threads], lambda: RankRLS().fit(table))


def test_limits_are_frozen_and_have_no_other_names(limits_of):
    with pytest.raises(FrozenInstanceError):
        limits.now.tile = 3
    with pytest.raises(TypeError, match="tiles"), limits_of(tiles=3):
        pass
