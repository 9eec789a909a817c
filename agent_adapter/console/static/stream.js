// The one event stream of a browser: open while a page is looked at, and opened again when it breaks.

const QUIET_MS = 40_000; // the server sends something every 15 seconds
const LONGEST_WAIT_MS = 5_000;
const LIVE = { "HX-Request": "true", "Agent-Adapter-Live": "1" };

const sum = (known, parts) => {
  const inbox = parts.inbox && known.inbox
    ? [...known.inbox.ids.filter((id) => !parts.inbox.removed.includes(id)), ...parts.inbox.added]
    : [];
  return {
    counts: parts.counts || known.counts,
    inbox: parts.inbox ? { ids: parts.inbox.ids || inbox, added: [], removed: [], total: parts.inbox.total } : known.inbox,
    channels: { ...known.channels, ...parts.channels },
    runs: { ...known.runs, ...parts.runs },
  };
};

/**
 * `send(page, message)` tells one page what it has to know: `{status, text}` of the connection, or
 * `{change}`, the parts that differ from what it was told before.
 */
export class Stream {
  #pages = new Map();
  #send;
  #source = null;
  #url = "";
  #known = null;
  #status = "closed";
  #text = "";
  #tries = 0;
  #retry = 0;
  #quiet = 0;

  constructor(send) {
    this.#send = send;
  }

  /** A page has come, or wants something else: `{visible, notify, channels, runs}`. */
  update(page, wants) {
    const isNew = !this.#pages.has(page);
    this.#pages.set(page, wants);
    // Whoever has loaded a page is signed in, and a page that asks again wants an answer now.
    if (isNew && ["lost", "signed-out", "refused"].includes(this.#status)) this.#stop("closed");
    this.#follow();
    this.#send(page, { status: this.#status, text: this.#text });
    if (this.#known) this.#send(page, { change: this.#known });
  }

  /** A page has gone. */
  remove(page) {
    this.#pages.delete(page);
    this.#follow();
  }

  /** The network has come back: do not wait for the next try. */
  hurry() {
    if (this.#status === "lost") this.#open();
  }

  #tell(message) {
    for (const page of this.#pages.keys()) this.#send(page, message);
  }

  #say(status, text = "") {
    if (status === this.#status && text === this.#text) return;
    this.#status = status;
    this.#text = text;
    this.#tell({ status, text });
  }

  #stop(status, text) {
    clearTimeout(this.#retry);
    clearTimeout(this.#quiet);
    if (this.#source) this.#source.close();
    this.#source = null;
    this.#url = "";
    this.#say(status, text);
  }

  #follow() {
    const looking = [...this.#pages.values()].filter((page) => page.visible || page.notify);
    if (!looking.length) {
      this.#known = null;
      return this.#stop("closed");
    }
    if (this.#status === "signed-out" || this.#status === "refused") return undefined;
    const query = new URLSearchParams();
    for (const name of ["channel", "run"]) {
      const ids = new Set(looking.flatMap((page) => page[`${name}s`]));
      for (const id of [...ids].sort().slice(0, 16)) query.append(name, id);
    }
    const url = `/events?${query}`;
    if (url === this.#url) return undefined;
    this.#url = url;
    return this.#open();
  }

  #open() {
    clearTimeout(this.#retry);
    if (this.#source) this.#source.close();
    if (this.#status !== "lost") this.#say("connecting");
    const source = new EventSource(this.#url);
    this.#source = source;
    let isFirst = true;
    source.addEventListener("change", (event) => {
      const change = JSON.parse(event.data);
      this.#known = isFirst ? change : sum(this.#known, change);
      isFirst = false;
      this.#tries = 0;
      this.#listen();
      this.#say("open");
      this.#tell({ change });
    });
    source.addEventListener("ping", () => this.#listen());
    source.addEventListener("end", (event) => {
      if (JSON.parse(event.data).reason === "signed-out") this.#stop("signed-out");
      else this.#fail(source);
    });
    source.addEventListener("error", () => this.#fail(source));
    this.#listen();
  }

  // A line that is dead without an end is silent.
  #listen() {
    clearTimeout(this.#quiet);
    const source = this.#source;
    this.#quiet = setTimeout(() => this.#fail(source), QUIET_MS);
  }

  async #fail(source) {
    if (source !== this.#source || source === null) return;
    source.close();
    clearTimeout(this.#quiet);
    const wait = Math.min(LONGEST_WAIT_MS, 250 * 2 ** this.#tries);
    this.#tries += 1;
    this.#say("lost");
    let answer = null;
    try {
      // A failed stream does not say why.
      answer = await fetch("/events/check", { headers: LIVE, credentials: "same-origin", signal: AbortSignal.timeout(LONGEST_WAIT_MS) });
    } catch {
      // Not reachable: tried again below.
    }
    if (source !== this.#source) return;
    if (answer && answer.status === 401) return this.#stop("signed-out");
    if (answer && answer.ok && this.#tries > 4) return this.#stop("refused", "The console refuses to keep this page up to date. Reload it, or close other browsers that show the console.");
    this.#retry = setTimeout(() => source === this.#source && this.#open(), wait);
  }
}
