"""The sizes from which on work is done another way, in blocks, or not at all: one frozen value."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Limits:
    """What a fit, a score or a pass over a table may take, and where its way of work changes."""

    # Memory.
    # Bytes that may be allocated; None asks the machine.
    available_memory: float | None = None
    # Allocations up to this many bytes are made without asking: that takes as long as a small fit.
    unasked_bytes: int = 1 << 24
    # Dense blocks of rows take about this many bytes.
    dense_block_bytes: int = 64 << 20

    # Files and tables.
    # This many compressed bytes are read at a time.
    packed_bytes: int = 1 << 16
    # This many bytes of LETOR text are read at a time where rows are loaded.
    chunk_bytes: int = 1 << 22
    # LETOR files of tables are parsed in pieces of about this many bytes.
    piece_bytes: int = 64 << 20
    # LETOR files with more features than this are no tables: they are read as sparse rows.
    widest_letor: int = 8192
    # Rows are read in batches of about this many, in whatever pieces the source gives them.
    batch_rows: int = 1 << 17
    # Batches are put together until they have at least this many rows.
    fewest_batch_rows: int = 1 << 16
    # The features of one query may take at most this many bytes: they must be in memory together.
    query_bytes: int = 256 << 20
    # Quantiles, medians, landmarks and widths of kernels are found from at most this many rows.
    sample_rows: int = 100_000
    # At most this many ids of queries are remembered.
    most_ids: int = 10_000_000

    # Features and kernels.
    # Kernel matrices are computed in tiles of this many rows and columns, in float64.
    tile: int = 512
    # The minmax kernel makes sparse rows of a tile dense if they have at most this many features:
    # a tile then takes 32 MiB.
    widest_dense: int = 8192
    # With more rows than this, k-means works on small batches.
    lloyd_rows: int = 20_000
    # Support rows are prepared for scoring in parts of about this many bytes.
    part_bytes: int = 64 << 20

    # Solvers of least squares.
    # Rows of at most this many feature values are fitted by the compiled code of many sets.
    largest_set: int = 1 << 19
    # A sparse product needs nnz² multiplications for a row, each about 300 times slower than
    # those of a dense product: above this share of entries other than 0, dense blocks are faster.
    dense_share: float = 0.055
    # Steps leave columns out that have no entry, if there are more columns than this and fewer than
    # half of them have one.
    seen_columns: int = 8192
    # Sparse systems that are estimated to take so many seconds at most are solved directly.
    direct_seconds: float = 0.1
    # Others are solved by conjugate gradients, which may take this many times as long as the direct
    # solution before it is begun,
    step_patience: float = 1.0
    # unless that has exact held-out scores and takes at most this many times as long as they.
    exact_patience: float = 4.0
    # After this many steps of conjugate gradients there is a warning.
    gradient_steps: int = 10_000
    # From this order on a band form takes less time than eigenvectors do: two thirds of it here, in
    # the primal form, and at order 1,000 a third.
    band_order: int = 64
    # Folds of rows are kept for the next fit if there are at most this many rows.
    cached_rows: int = 4096
    # Refits that would take more flops than this are refused.
    refit_flops: float = 1e11
    # Of the queries that hold nearly all of a direction, so many at most are refitted without it.
    held_refits: int = 256
    # Groups with more rows than this many times the features are held out by refits.
    group_rows: float = 10.0
    # The statistics of all groups may take this many bytes.
    groups_bytes: int = 1 << 30
    # Held-out rows are solved in blocks of about this many.
    held_rows: int = 768
    # Folds of at most this share of the rows are held out by the band form. It takes about half of
    # the time that eigenvectors do, but a square of the fold for every thread.
    fold_share: float = 1 / 4
    # Held-out pairs: differences of scores are computed in blocks of this many entries.
    pair_entries: int = 1 << 22
    # Data whose held-out pairs would take more flops than this are refused.
    pair_flops: float = 1e12

    # RankSVM.
    # With more features than this, the preconditioner is the diagonal, not the Gram matrix.
    widest_gram: int = 4096
    # With a smaller tolerance than this, mapped features are stored in double precision.
    finest_single: float = 1e-5
    # Up to this many bytes they are also stored in double precision: half would save no time.
    smallest_single: int = 1 << 20
    # From this many features on, the Gram matrix is estimated from a sample of rows,
    sampled_features: int = 1024
    # which has at least this many rows for each feature,
    rows_per_feature: int = 3
    # and at least this many rows.
    fewest_sampled_rows: int = 4096

    # Newton steps of RankSVM, which mostly takes a dozen.
    newton_steps: int = 100

    # Many fits, and what is kept and said.
    # A prepared model is kept between calls if its arrays take at most this many bytes.
    kept_bytes: int = 64 << 20
    # So many rows are looked at first for what to measure next.
    proposed_rows: int = 2048
    # A search keeps the weights along its alphas if they take at most this many bytes.
    path_bytes: int = 256 << 20
    # Trials of features and kernels without gain may cost this many times what the trials up to
    # the last gain have cost,
    patience: float = 2.0
    # and so many seconds more.
    patient_seconds: float = 1.0


# The limits of this process: all threads read them at every use.
now = Limits()


@contextmanager
def limits_of(**changes: Any) -> Iterator[Limits]:
    """Change limits of the whole process for a while; one inside another takes its limits over."""
    global now
    before = now
    now = replace(before, **changes)
    try:
        yield now
    finally:
        now = before
