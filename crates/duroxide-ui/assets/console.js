// Keeps a page live: reads it again when the server says that it changed. Everything else works without this file.
"use strict";
(() => {
  const key = "duroxide-paused";
  let source = null;
  let url = null;

  const live = () => document.getElementById("live");
  const button = () => document.getElementById("pause");
  const isPaused = () => sessionStorage.getItem(key) === "yes";

  function show(state) {
    const it = button();
    if (!it) return;
    it.hidden = false;
    it.dataset.state = state;
    it.setAttribute("aria-pressed", String(state === "paused"));
    it.textContent = { live: "Live · pause", paused: "Paused · resume", off: "Not live · retry" }[state];
  }

  function disconnect() {
    if (source) source.close();
    source = null;
    url = null;
  }

  function connect() {
    const wanted = live() && live().dataset.live;
    if (isPaused()) { disconnect(); show("paused"); return; }
    // What the page has seen matters only for the beginning of a stream.
    const subject = wanted && wanted.replace(/&seen=\d+/, "");
    if (!subject || subject === url) return;
    disconnect();
    url = subject;
    source = new EventSource(wanted);
    source.addEventListener("open", () => show("live"));
    source.addEventListener("change", () => { if (live()) live().dispatchEvent(new CustomEvent("console:change")); });
    source.addEventListener("error", () => { if (source && source.readyState === EventSource.CLOSED) { disconnect(); show("off"); } });
    show("live");
  }

  // What the reader has opened and checked stays so when the page is replaced.
  let kept = null;
  function keep() {
    const within = live();
    if (!within) return;
    kept = {
      open: new Set([...within.querySelectorAll("details[open][data-key]")].map((it) => it.dataset.key)),
      checked: new Set([...within.querySelectorAll("input[name=id]:checked")].map((it) => it.value)),
      focus: within.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null,
    };
  }
  function restore() {
    const within = live();
    if (!within || !kept) return;
    for (const it of within.querySelectorAll("details[data-key]")) if (kept.open.has(it.dataset.key)) it.open = true;
    for (const it of within.querySelectorAll("input[name=id][type=checkbox]")) it.checked = kept.checked.has(it.value);
    if (kept.focus) {
      const again = [...within.querySelectorAll("a")].find((it) => it.getAttribute("href") === kept.focus);
      if (again) again.focus({ preventScroll: true });
    }
    kept = null;
  }

  document.addEventListener("htmx:beforeSwap", keep);
  document.addEventListener("htmx:afterSwap", () => { restore(); connect(); });
  // After a failed read the page stays as it is, and shows that the read failed.
  document.addEventListener("htmx:responseError", () => { disconnect(); show("off"); });
  document.addEventListener("click", (event) => {
    if (event.target.id === "pause") {
      const wasLive = event.target.dataset.state === "live";
      sessionStorage.setItem(key, wasLive ? "yes" : "no");
      connect();
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.id !== "pick-all") return;
    for (const it of document.querySelectorAll("input[name=id][type=checkbox]")) it.checked = event.target.checked;
  });
  window.addEventListener("pagehide", disconnect);
  window.addEventListener("pageshow", connect);
  connect();
})();
