"""Makes property tests the same in every run, and their failures short: a plugin of pytest."""

from hypothesis import Phase, settings

settings.register_profile(
    "mutation",
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),
)
