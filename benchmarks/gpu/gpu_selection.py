"""Checks and times selection on a GPU, or its twin (None), for gpu_check.py."""

import secrets
from collections.abc import Iterator

from gear_reverb import _native

REPEATS = 7


def is_like_its_twin(gpu: int | None, small: bool) -> dict[str, int]:
    seed = secrets.randbits(32)
    differences = _native.cuda_check_selection(gpu, seed, 2000 if small else 300_000)
    assert not differences, "\n".join(differences)
    return {"seed": seed}


def draws_are_like_their_twins(gpu: int | None) -> dict[str, int]:
    seed = secrets.randbits(32)
    differences = _native.cuda_check_draws(gpu, seed, 30)
    assert not differences, "\n".join(differences)
    return {"seed": seed}


def rates(gpu: int | None, small: bool) -> Iterator[dict[str, float]]:
    """Weighted draws and updates of priorities, in milliseconds."""
    draws = 1 << (10 if small else 20)
    repeats = REPEATS if small or gpu is None else 200  # For a fifth of a second or so.
    for items in (10**3, 10**4) if small else (10**5, 10**8, 10**6):
        draw = _native.cuda_measure_draw(gpu, "Prioritized", items, draws, repeats) * 1e3
        update = _native.cuda_measure_update(gpu, items, 4096, 10 * repeats) * 1e3
        print(f"   {items} items: draw {draws} {draw:.3f} ms, update 4096 {update:.4f} ms")
        yield {"items": items, f"draw {draws} ms": draw, "update 4096 ms": update}


def strategies(gpu: int | None, small: bool) -> Iterator[dict[str, float | str]]:
    """2^20 draws of every strategy from 10^6 items, and an order's first 1024, in milliseconds."""
    draws, items = (1 << 10, 3000) if small else (1 << 20, 10**6)
    for name in ("Uniform", "Prioritized", "Fifo", "Lifo", "MinHeap", "MaxHeap"):
        draw = _native.cuda_measure_draw(gpu, name, items, draws, REPEATS) * 1e3
        result: dict[str, float | str] = {"strategy": name, "items": items}
        result[f"draw {draws} ms"] = draw
        line = f"   {name} of {items} items: draw {draws} {draw:.3f} ms"
        if name not in ("Uniform", "Prioritized"):
            top = _native.cuda_measure_top(gpu, name, items, 1024, REPEATS) * 1e3
            result["first 1024 ms"] = top
            line += f", first 1024 {top:.3f} ms"
        print(line)
        yield result
