"""The texts of the page: frames enter, HTML leaves.

Every value from data passes `escaped`.
"""

from collections.abc import Sequence

from steelyard.control.history import HotKeyShare
from steelyard.dashboard import theme, wording
from steelyard.dashboard.frames import Frame, LogLine, SlotSummary
from steelyard.showing import escaped


def summary(frame: Frame, *, is_simulated: bool) -> str:
    """Return the sentences and the numbers of a slot."""
    numbers = frame.summary
    tiles = "".join(
        f'<div class="tile"><dt>{name}</dt><dd>{escaped(value)}<small>{unit}</small></dd></div>'
        for name, value, unit in _tiles(numbers)
    )
    when = wording.moment(numbers.time, is_simulated=is_simulated)
    when += " into the stream" if is_simulated else ""
    return (
        f'<p class="finding {"bad" if frame.is_bad else "good"}">'
        f"<strong>{escaped(frame.finding)}</strong> {escaped(frame.action)}</p>"
        f"<dl>{tiles}</dl>"
        f'<p class="when">slot {numbers.slot:,} · {escaped(when)}</p>'
    )


def _tiles(numbers: SlotSummary) -> list[tuple[str, str, str]]:
    utilization = "–" if numbers.utilization is None else f"{100 * numbers.utilization:.0f}"
    p99 = wording.seconds(numbers.p99).split(" ")
    return [
        ("throughput", wording.whole(numbers.rate), " messages/s"),
        ("utilization", utilization, " %" if numbers.utilization is not None else ""),
        ("imbalance", f"{numbers.imbalance:.0%}".removesuffix("%"), " %"),
        ("latency (p99)", p99[0], f" {p99[1]}" if len(p99) > 1 else ""),
        ("backlog", f"{100 * numbers.backlog:,.0f}", " % of a slot"),
        ("moves so far", f"{numbers.moves_so_far:,}", ""),
    ]


def waiting(notice: str) -> str:
    """Return the text that is shown until the first slot arrives."""
    text = escaped(notice or "Waiting for the first slot.")
    return f'<p class="finding">{text}</p>'


def hot_keys(keys: Sequence[HotKeyShare]) -> str:
    """Return a table of the most frequent keys, each with a bar of its share."""
    if not keys:
        return '<p class="none">No hot keys were reported.</p>'
    most = max(key.share for key in keys) or 1.0
    rows = "".join(
        f'<tr><td class="key" title="{escaped(wording.shortened(key.key))}">'
        f"<bdi>{escaped(wording.shortened(key.key))}</bdi></td>"
        f'<td class="share">{escaped(wording.percent(key.share))}</td>'
        f'<td class="line"><i style="width:{100 * key.share / most:.1f}%"></i></td></tr>'
        for key in keys
    )
    return f"<table>{rows}</table>"


def moves(lines: Sequence[LogLine], *, is_simulated: bool) -> str:
    """Return a list of the moves, the latest first."""
    if not lines:
        return '<p class="none">No virtual worker has moved.</p>'
    rows = "".join(
        f'<li><span class="slot">slot {line.slot:,}</span> '
        f"<span>{escaped(line.text)}</span>"
        f"<time>{escaped(wording.moment(line.time, is_simulated=is_simulated))}</time></li>"
        for line in lines
    )
    return f"<ol>{rows}</ol>"


def legend(styles: dict[str, theme.BlockStyle]) -> str:
    """Return a swatch and a name for each style."""
    return "".join(
        f'<span><i class="swatch {style.hatch}{"" if style.fill else " hollow"}" '
        f'style="--color:{style.color}"></i>{escaped(name)}</span>'
        for name, style in styles.items()
    )
