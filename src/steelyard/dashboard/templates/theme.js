// The page follows the color scheme of the system until the user presses the button. Figures are
// drawn on a canvas without style sheets, so this script sets the colors of their text and lines.
(() => {
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const kept = () => { try { return localStorage.getItem("steelyard-theme"); } catch { return null; } };
  const wanted = () => kept() ?? (system.matches ? "dark" : "light");

  const figures = () =>
    (window.Bokeh?.documents ?? []).flatMap((doc) => doc.roots().filter((root) => root.type === "Figure"));

  // The server does not need the colors of this page.
  const set = (model, values) => model.setv(values, { sync: false });

  function paint() {
    document.documentElement.dataset.theme = wanted();
    const style = getComputedStyle(document.documentElement);
    const [ink, soft, accent] = ["--ink", "--soft", "--accent"].map((name) => style.getPropertyValue(name).trim());
    for (const figure of figures()) {
      for (const axis of [...figure.left, ...figure.below]) {
        if (axis.major_label_text_color === undefined) continue;
        set(axis, { major_label_text_color: ink, axis_label_text_color: soft });
      }
      for (const { name, glyph } of figure.renderers) {
        if (name === "text") set(glyph, { text_color: { value: ink } });
        if (name === "last run") set(glyph, { line_color: accent });
        if (name === "outline") set(glyph, { line_color: { value: ink } });
      }
    }
    return figures().length > 0;
  }

  paint();
  const trying = setInterval(() => { if (paint()) clearInterval(trying); }, 50);
  system.addEventListener("change", paint);
  document.addEventListener("DOMContentLoaded", () =>
    document.getElementById("theme").addEventListener("click", () => {
      const other = wanted() === "dark" ? "light" : "dark";
      try { localStorage.setItem("steelyard-theme", other); } catch { /* the choice holds for this page only */ }
      document.documentElement.dataset.theme = other;
      paint();
    }));
})();
