"""Power curves: watts at the wall at 0, 10, … 100 % load, measured at full frequency (SPECpower_ssj2008)."""

from __future__ import annotations

from typing import Sequence

Curve = tuple[float, ...]

CURVES: dict[str, Curve] = {
    # Dual EPYC 7763, 128 cores (2022). The default: a modern node with a convex upper end.
    "epyc-7763-2p": (122, 164, 182, 198, 214, 232, 249, 268, 299, 349, 406),
    "epyc-7763-1p": (56.8, 100, 116, 130, 143, 162, 191, 211, 231, 250, 268),
    "xeon-8380-2p": (110, 181, 212, 244, 269, 303, 342, 386, 443, 514, 623),
    "xeon-8352y-2p": (137, 185, 213, 242, 271, 301, 333, 365, 417, 478, 491),
    "xeon-6336y-2p": (176, 193, 209, 225, 245, 270, 329, 396, 487, 583, 650),
    "xeon-4214-2p": (112, 138, 150, 161, 175, 184, 198, 212, 242, 261, 289),
    "xeon-e2388g-1p": (18, 21.6, 24.4, 27.2, 30.5, 34.7, 39, 43.8, 49.7, 59.1, 73.6),
}
DEFAULT_CURVE = "epyc-7763-2p"


def resolve(curve: str | Sequence[float]) -> Curve:
    """A curve by name, or eleven numbers that never fall with load."""
    if isinstance(curve, str):
        if curve not in CURVES:
            raise ValueError(f"unknown power curve {curve!r}; known: {', '.join(sorted(CURVES))}")
        return CURVES[curve]
    points = tuple(float(p) for p in curve)
    if len(points) != 11:
        raise ValueError(f"a power curve has 11 points, not {len(points)}")
    if points[0] < 0 or any(b < a for a, b in zip(points, points[1:])):
        raise ValueError("a power curve is not negative and does not fall with load")
    return points


def watts_at(curve: Curve, load: float) -> float:
    """Linear between the points; load is a fraction, clipped to 0..1."""
    position = min(1.0, max(0.0, load)) * 10
    low = min(9, int(position))
    return curve[low] + (curve[low + 1] - curve[low]) * (position - low)
