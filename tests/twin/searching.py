"""How hypothesis runs histories."""

from hypothesis import HealthCheck, Phase, Verbosity, settings


def settings_of(examples: int, steps: int, *phases: Phase) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=phases or (Phase.generate, Phase.shrink),
        verbosity=Verbosity.quiet,
        print_blob=False,
        report_multiple_bugs=False,  # the first one is shrunk
    )
