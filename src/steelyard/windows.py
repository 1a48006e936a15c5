"""Windows of event time."""

from dataclasses import dataclass

from steelyard.durations import seconds_of


@dataclass(frozen=True)
class Window:
    """Windows of event time, as in Spark's `window` and `withWatermark`.

    The stream must not have a watermark already.

    >>> Window("at", "1 hour", watermark="10 minutes")
    Window(time='at', length='1 hour', slide=None, watermark='10 minutes')
    >>> Window("at", "1 hour", slide="25 minutes")
    Traceback (most recent call last):
    ...
    ValueError: window must be a whole number of slides, got '1 hour' and '25 minutes'
    """

    time: str
    """The column of event times."""
    length: str
    """Such as "1 hour"."""
    slide: str | None = None
    """From the start of one window to the start of the next; None: the length, without overlap."""
    watermark: str | None = None
    """How late rows may be; None: every window stays open."""

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
        """Microseconds from one window's start to the next: partial states are kept for each."""
        return round(seconds_of("slide", self.slide or self.length) * 1e6)

    def __str__(self) -> str:
        """The windows as text, without the watermark, which a restart may change."""
        length, every = (seconds_of("window", w) for w in (self.length, self.slide or self.length))
        return f"{length:g} seconds of {self.time!r} every {every:g} seconds"
