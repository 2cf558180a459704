"""The verdict on a claim that two ways are alike: within a margin that is stated beforehand."""

from actionspan.papers.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, Rule, Verdict


def within(margin: float, unit: str = "") -> Rule:
    """Return the rule of a claim of equivalence: both ends of the interval inside ± margin.

    It is two one-sided tests (Schuirmann, 1987) at half the level that is left to the interval.

    Args:
        margin: The largest difference that does not matter, above 0.
        unit: Of the difference, e.g. "points".
    """
    named = f"±{margin:g} {unit}".rstrip()

    def judge(low: float, high: float, _published: float | None, _form: str) -> tuple[Verdict, str]:
        if -margin < low and high < margin:
            return REPRODUCED, f"The interval lies within {named}."
        if low >= margin or high <= -margin:
            return NOT_REPRODUCED, f"The interval lies outside {named}."
        return NOT_TESTABLE, f"The interval holds differences within {named} and beyond."

    return judge
