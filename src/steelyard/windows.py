"""Windows of event time."""

from dataclasses import dataclass

from steelyard.durations import seconds_of


@dataclass(frozen=True)
class Window:
    """Windows of event time, as in Spark's `window` and `withWatermark`.

    The stream must not have a watermark already.

    Args:
        time: The column of event times.
        length: The length of a window, such as "1 hour".
        slide: The time from the start of one window to the start of the next; None: the length of a
            window, so that windows do not overlap.
        watermark: The time by which rows may be late; None: every window stays open.

    >>> Window("at", "1 hour", watermark="10 minutes")
    Window(time='at', length='1 hour', slide=None, watermark='10 minutes')
    >>> Window("at", "1 hour", slide="25 minutes")
    Traceback (most recent call last):
    ...
    ValueError: window must be a whole number of slides, got '1 hour' and '25 minutes'
    """

    time: str
    length: str
    slide: str | None = None
    watermark: str | None = None

    def __post_init__(self) -> None:
        length = seconds_of("window", self.length)
        if self.slide is not None:
            ratio = length / seconds_of("slide", self.slide)
            if ratio < 1 or ratio != round(ratio):
                raise ValueError(
                    f"window must be a whole number of slides, got {self.length!r} and "
                    f"{self.slide!r}"
                )
        if self.watermark is not None:
            seconds_of("watermark", self.watermark, least=0)

    @property
    def pane(self) -> int:
        """The length of a pane in microseconds; partial states are kept by pane."""
        return round(seconds_of("slide", self.slide or self.length) * 1e6)

    def __str__(self) -> str:
        """Return the windows as text, without the watermark, which may change at a restart."""
        length, every = (seconds_of("window", w) for w in (self.length, self.slide or self.length))
        return f"{length:g} seconds of {self.time!r} every {every:g} seconds"
