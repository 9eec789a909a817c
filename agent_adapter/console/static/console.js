// Keyboard shortcuts and live updates; pages work without this file.
"use strict";

(() => {
  const records = document.getElementById("records");
  const announce = (text) => {
    const live = document.getElementById("live");
    if (live) live.textContent = text;
  };
  const allRecords = () => Array.from(document.querySelectorAll("[data-record]"));
  const currentRecord = () => document.activeElement && document.activeElement.closest("[data-record]");

  const moveFocus = (step) => {
    const list = allRecords();
    if (!list.length) return;
    const at = list.indexOf(currentRecord());
    const next = at < 0 ? (step > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + step));
    list[next].focus();
    list[next].scrollIntoView({ block: "nearest" });
  };

  const clickButton = (name) => {
    const list = allRecords();
    const record = currentRecord() || (list.length === 1 ? list[0] : null);
    const button = record && record.querySelector(`[data-${name}]`);
    if (button) button.click();
    else if (record && name !== "open") openRecord(record);
    else announce("Select a request first, with j or k.");
  };
  const openRecord = (record) => {
    const link = record.querySelector("[data-open]");
    if (link) link.click();
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const target = event.target;
    if (target instanceof Element && target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    if (!allRecords().length) return;
    const actions = { j: () => moveFocus(1), k: () => moveFocus(-1), a: () => clickButton("approve"), d: () => clickButton("deny"), e: () => clickButton("edit") };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });

  const fetchFragment = async (path) => {
    const answer = await fetch(path, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return null;
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    return holder.content;
  };

  const updateTotal = (total) => {
    const tag = document.getElementById("total");
    if (tag) tag.textContent = `${total} pending`;
    const empty = document.getElementById("empty");
    if (empty && records) empty.hidden = records.querySelector("[data-record]") !== null;
  };

  const removeRecord = (id) => {
    const record = document.getElementById(id);
    if (!record || !records || !records.contains(record)) return;
    const here = record.contains(document.activeElement);
    const next = record.nextElementSibling || record.previousElementSibling;
    record.remove();
    if (here && next) next.focus();
  };

  const addRecord = async (id) => {
    if (!records || document.getElementById(id)) return;
    const content = await fetchFragment(`/approvals/${encodeURIComponent(id)}/item`);
    const record = content && content.firstElementChild;
    if (!record || document.getElementById(id)) return;
    records.append(record);
    if (window.htmx) window.htmx.process(record);
    const name = record.querySelector("h2");
    announce(`New request: ${name ? name.textContent.trim() : id}`);
  };

  if (records && records.dataset.live && window.EventSource) {
    const source = new EventSource(records.dataset.live);
    let work = Promise.resolve();
    source.addEventListener("change", (event) => {
      const change = JSON.parse(event.data);
      work = work.then(async () => {
        if (change.ids) {
          const known = new Set(change.ids);
          for (const record of allRecords()) if (!known.has(record.id)) removeRecord(record.id);
        }
        for (const id of change.removed) removeRecord(id);
        for (const id of change.ids || change.added) await addRecord(id);
        updateTotal(change.total);
      }).catch(() => {});
    });
    window.addEventListener("pagehide", () => source.close());
  }

  // htmx drops error responses by default: show the problem inside the request instead.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const detail = event.detail;
    if (detail.xhr.status < 400) return;
    const page = new DOMParser().parseFromString(detail.xhr.responseText, "text/html");
    const problem = page.querySelector(".problem");
    const text = problem ? problem.textContent : `Error ${detail.xhr.status}`;
    const record = detail.target;
    let line = record.querySelector("[data-problem]");
    if (!line) {
      line = document.createElement("p");
      line.className = "problem";
      line.dataset.problem = "";
      line.setAttribute("role", "alert");
      record.append(line);
    }
    line.textContent = text;
    detail.shouldSwap = false;
  });
  document.body.addEventListener("htmx:afterRequest", (event) => {
    const detail = event.detail;
    if (detail.successful && detail.target && detail.target.matches("[data-record]")) {
      announce("Decided.");
      const list = allRecords();
      const here = list[0];
      if (here && document.activeElement === document.body) here.focus();
      const empty = document.getElementById("empty");
      if (empty) empty.hidden = list.length > 0;
    }
  });

  const log = document.querySelector("[data-live-log]");
  if (log && window.EventSource) {
    const source = new EventSource(log.dataset.liveLog);
    let shownState = null;
    source.addEventListener("change", async (event) => {
      const change = JSON.parse(event.data);
      const before = shownState;
      shownState = `${change.state} ${change.expected} ${change.turn}`;
      if (change.entries > Number(log.dataset.last)) {
        const content = await fetchFragment(`${log.dataset.entries}?since=${log.dataset.last}`);
        if (content) {
          log.append(content);
          log.dataset.last = String(change.entries);
        }
      }
      // On the first event as well: the state may have changed since the page was rendered.
      if (before !== shownState) await refreshState();
    });
    window.addEventListener("pagehide", () => source.close());
  }

  // Replaces the state beside the transcript, but not an element that has the focus.
  const refreshState = async () => {
    const answer = await fetch(location.pathname, { credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const selector of ["#state", "#main dl.facts", "section[aria-labelledby=side]"]) {
      const fresh = page.querySelector(selector);
      const old = document.querySelector(selector);
      if (fresh && old && !old.contains(document.activeElement)) old.replaceWith(document.importNode(fresh, true));
    }
    if (!document.querySelector(".speak") && page.querySelector(".speak")) {
      log.after(document.importNode(page.querySelector(".speak"), true));
    }
  };
})();
