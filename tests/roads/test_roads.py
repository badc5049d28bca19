"""Two roads to the same model lead to the same model.

Hypothesis draws an estimator, its settings and rows. Each test goes one road and a plain one,
mostly a fit of arrays of float64. The answers agree within what rounding errors explain (see
`outcomes`), or the road ends with an error that the documentation states. Nothing else passes.
Every kind of estimator goes every road that is open to it.
"""

import pytest
import roads_of_arrays
import roads_of_batches
import roads_of_engines
import roads_of_models
import roads_of_tables
from hypothesis import HealthCheck, given, settings, strategies as st
from journeys import journeys
from road import ROADS

ROOMS = (roads_of_arrays, roads_of_batches, roads_of_engines, roads_of_models, roads_of_tables)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(ROADS))
@settings(max_examples=4, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_road_leads_to_the_same_model(name, data):
    journey = data.draw(st.sampled_from(sorted(ROADS[name].kinds)).flatmap(journeys))
    faults = ROADS[name].faults(journey)
    assert not faults, f"{name}: {journey.estimator}"
