"""A measured figure beside what was promised."""
from dataclasses import asdict, dataclass


class BenchError(RuntimeError):
    """A figure could not be measured; the text says why."""


@dataclass(frozen=True)
class Figure:
    bench: str
    what: str
    value: float
    unit: str
    target: float | None = None  # the value must not be above it; None: only for comparison
    note: str = ""
    at_least: bool = False  # the value must not be below the target instead

    @property
    def met(self):
        if self.target is None:
            return True
        return self.value >= self.target if self.at_least else self.value <= self.target

    def line(self):
        text = f"{self.bench}: {self.what} {number(self.value)} {self.unit}".rstrip()
        if self.target is not None:
            text += f" (target {'>=' if self.at_least else '<='} {number(self.target)} {self.unit})".replace(" )", ")")
        if self.note:
            text += f", {self.note}"
        return text if self.met else f"{text}  MISSED"

    def document(self):
        return {**asdict(self), "met": self.met}


def number(value):
    """Three digits that count; whole numbers from a hundred on."""
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"
