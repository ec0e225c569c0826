"""The phases of a batch, in order."""

GENERATED_PHASE, FETCHED_PHASE, PARSED_PHASE, UPDATED_PHASE = PHASES = (
    "generated",
    "fetched",
    "parsed",
    "updated",
)
# What they are depends on options: a snapshot records these under the name of the phase.
PHASES_WITH_OPTIONS = (PARSED_PHASE, UPDATED_PHASE)
