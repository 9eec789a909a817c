// What pages do beyond forms and links: keys, and entries that come and go by themselves.
"use strict";

(() => {
  const records = document.getElementById("records");
  const say = (text) => {
    const live = document.getElementById("live");
    if (live) live.textContent = text;
  };
  const all = () => Array.from(document.querySelectorAll("[data-record]"));
  const current = () => document.activeElement && document.activeElement.closest("[data-record]");

  const go = (step) => {
    const list = all();
    if (!list.length) return;
    const at = list.indexOf(current());
    const next = at < 0 ? (step > 0 ? 0 : list.length - 1) : Math.min(list.length - 1, Math.max(0, at + step));
    list[next].focus();
    list[next].scrollIntoView({ block: "nearest" });
  };

  const press = (name) => {
    const list = all();
    const record = current() || (list.length === 1 ? list[0] : null);
    const button = record && record.querySelector(`[data-${name}]`);
    if (button) button.click();
    else if (record && name !== "open") press_open(record);
    else say("Choose a request first, with j or k.");
  };
  const press_open = (record) => {
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
    if (!all().length) return;
    const does = { j: () => go(1), k: () => go(-1), a: () => press("approve"), d: () => press("deny"), e: () => press("edit") };
    if (!Object.hasOwn(does, event.key)) return;
    event.preventDefault();
    does[event.key]();
  });

  const part = async (path) => {
    const answer = await fetch(path, { headers: { "HX-Request": "true" }, credentials: "same-origin" });
    if (!answer.ok || answer.redirected) return null;
    const holder = document.createElement("template");
    holder.innerHTML = await answer.text();
    return holder.content;
  };

  const count = (total) => {
    const tag = document.getElementById("total");
    if (tag) tag.textContent = `${total} waiting`;
    const empty = document.getElementById("empty");
    if (empty && records) empty.hidden = records.querySelector("[data-record]") !== null;
  };

  const leave = (id) => {
    const record = document.getElementById(id);
    if (!record || !records || !records.contains(record)) return;
    const here = record.contains(document.activeElement);
    const next = record.nextElementSibling || record.previousElementSibling;
    record.remove();
    if (here && next) next.focus();
  };

  const arrive = async (id) => {
    if (!records || document.getElementById(id)) return;
    const content = await part(`/approvals/${encodeURIComponent(id)}/item`);
    const record = content && content.firstElementChild;
    if (!record || document.getElementById(id)) return;
    records.append(record);
    if (window.htmx) window.htmx.process(record);
    const name = record.querySelector("h2");
    say(`A new request: ${name ? name.textContent.trim() : id}`);
  };

  if (records && records.dataset.live && window.EventSource) {
    const source = new EventSource(records.dataset.live);
    let work = Promise.resolve();
    source.addEventListener("change", (event) => {
      const change = JSON.parse(event.data);
      work = work.then(async () => {
        if (change.ids) {
          const known = new Set(change.ids);
          for (const record of all()) if (!known.has(record.id)) leave(record.id);
        }
        for (const id of change.removed) leave(id);
        for (const id of change.ids || change.added) await arrive(id);
        count(change.total);
      }).catch(() => {});
    });
    window.addEventListener("pagehide", () => source.close());
  }

  // An answer that refuses still says why: it takes the place of the request.
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const detail = event.detail;
    if (detail.xhr.status < 400) return;
    const page = new DOMParser().parseFromString(detail.xhr.responseText, "text/html");
    const problem = page.querySelector(".problem");
    const text = problem ? problem.textContent : `not done (${detail.xhr.status})`;
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
      say("Decided.");
      const list = all();
      const here = list[0];
      if (here && document.activeElement === document.body) here.focus();
      const empty = document.getElementById("empty");
      if (empty) empty.hidden = list.length > 0;
    }
  });

  const log = document.querySelector("[data-live-log]");
  if (log && window.EventSource) {
    const source = new EventSource(log.dataset.liveLog);
    let told = null;
    source.addEventListener("change", async (event) => {
      const change = JSON.parse(event.data);
      const before = told;
      told = `${change.state} ${change.expected} ${change.turn}`;
      if (change.entries > Number(log.dataset.last)) {
        const content = await part(`${log.dataset.entries}?since=${log.dataset.last}`);
        if (content) {
          log.append(content);
          log.dataset.last = String(change.entries);
        }
      }
      // The first time as well: much may have happened since the page itself was made.
      if (before !== told) await renew();
    });
    window.addEventListener("pagehide", () => source.close());
  }

  // The state beside the transcript is drawn anew; what somebody is typing stays.
  const renew = async () => {
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
