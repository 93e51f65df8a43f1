// The page works without this: it adds Airflow's theme, arrow keys in tables, and links that leave Airflow's frame.
(() => {
  "use strict";
  const root = document.documentElement;

  // Airflow keeps the choice of its user here. Without one, the browser's preference counts, which the style sheet asks for.
  const follow = () => {
    let chosen = null;
    try { chosen = localStorage.getItem("theme"); } catch { /* storage is blocked: nothing is known */ }
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen; else delete root.dataset.theme;
  };
  follow();
  addEventListener("storage", (event) => { if (event.key === null || event.key === "theme") follow(); });

  // One stop for Tab in each table; arrows, Home and End inside it (WAI-ARIA, pattern Grid).
  const grid = (table) => {
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]).map((row) => [...row.querySelectorAll("a")]);
    const links = rows.flat();
    if (links.length === 0) return;
    table.setAttribute("role", "grid");
    links.forEach((link, number) => { link.tabIndex = number === 0 ? 0 : -1; });
    table.addEventListener("focusin", (event) => {
      if (!links.includes(event.target)) return;
      links.forEach((link) => { link.tabIndex = -1; });
      event.target.tabIndex = 0;
    });
    table.addEventListener("keydown", (event) => {
      if (event.altKey || event.metaKey || event.shiftKey) return;
      const at = rows.findIndex((row) => row.includes(document.activeElement));
      if (at < 0) return;
      const place = rows[at].indexOf(document.activeElement);
      const end = rows.length - 1;
      const moves = {
        ArrowLeft: [at, place - 1], ArrowRight: [at, place + 1], ArrowUp: [at - 1, place], ArrowDown: [at + 1, place],
        Home: [event.ctrlKey ? 0 : at, 0], End: [event.ctrlKey ? end : at, Infinity],
        PageUp: [Math.max(0, at - 10), place], PageDown: [Math.min(end, at + 10), place],
      };
      const move = moves[event.key];
      if (!move || (event.ctrlKey && !["Home", "End"].includes(event.key))) return;
      const row = rows[move[0]];
      if (row && move[1] >= 0) row[Math.min(move[1], row.length - 1)].focus();
      event.preventDefault();
    });
  };

  // Airflow's frame may neither open windows nor move the page around it. Airflow's own page, of the same origin, may.
  const leave = (event) => {
    const link = event.target.closest("a[data-airflow]");
    if (!link || parent === window || event.defaultPrevented) return;
    try {
      const outer = parent.document.createElement("a");
      outer.href = link.href;
      event.preventDefault();
      outer.click();
    } catch { /* another site's frame: the link stays in it */ }
  };

  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("table[data-grid]").forEach(grid);
    document.addEventListener("click", leave);
  });
})();
