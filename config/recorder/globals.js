// globals gives modules the names of a server-side JavaScript runtime. Nothing here reaches a file, a clock that fires, or a
// network. It is given (host, env, root).
(function (host, env, root) {
  "use strict";
  const hidden = (name, value) => Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  const later = (name) =>
    function () {
      throw new Error(`${name} is not available while a module is loaded`);
    };
  const nothing = () => {};

  hidden("jr2host", Object.freeze({ repoProblem: (url) => host.repoProblem(String(url)), meta: (file) => meta(file) }));

  class URL {
    constructor(input, base) {
      const parts = host.parseURL(String(input), base === undefined ? "" : String(base));
      if (!parts) throw new TypeError(`Invalid URL: ${host.shownURL(String(input))}`);
      Object.assign(this, parts);
      this.searchParams = new URLSearchParams(this.search);
    }
    toString() {
      return this.href;
    }
    toJSON() {
      return this.href;
    }
    static canParse(input, base) {
      return !!host.parseURL(String(input), base === undefined ? "" : String(base));
    }
  }
  class URLSearchParams {
    constructor(init = "") {
      this.pairs = [];
      if (typeof init === "string") {
        for (const pair of init.replace(/^\?/, "").split("&").filter(Boolean)) {
          const [k, ...v] = pair.split("=");
          this.pairs.push([k, v.join("=")].map((s) => decodeURIComponent(s.replaceAll("+", " "))));
        }
      } else {
        for (const [k, v] of init[Symbol.iterator] ? init : Object.entries(init)) this.pairs.push([String(k), String(v)]);
      }
    }
    get(key) {
      const pair = this.pairs.find(([k]) => k === key);
      return pair ? pair[1] : null;
    }
    getAll(key) {
      return this.pairs.filter(([k]) => k === key).map(([, v]) => v);
    }
    has(key) {
      return this.pairs.some(([k]) => k === key);
    }
    set(key, value) {
      this.pairs = [...this.pairs.filter(([k]) => k !== key), [key, String(value)]];
    }
    append(key, value) {
      this.pairs.push([key, String(value)]);
    }
    [Symbol.iterator]() {
      return this.pairs[Symbol.iterator]();
    }
    toString() {
      return this.pairs.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
    }
  }
  hidden("URL", URL);
  hidden("URLSearchParams", URLSearchParams);

  // import.meta of one module. The folder is not looked at: a URL may name what does not exist.
  const meta = (file) => {
    const url = host.fileURL(file);
    return {
      url,
      filename: file,
      dirname: file.replace(/\/[^/]*$/, "") || "/",
      resolve(specifier) {
        specifier = String(specifier);
        if (!/^(\.{0,2}\/|[A-Za-z][A-Za-z0-9+.-]*:)/.test(specifier))
          throw new Error(`import.meta.resolve(${JSON.stringify(specifier)}): a package is not resolved while a module is loaded — name a path`);
        return new URL(specifier, url).href;
      },
    };
  };

  hidden("console", Object.fromEntries(["log", "info", "warn", "error", "debug", "trace", "dir", "table", "group", "groupEnd", "time", "timeEnd", "assert"].map((k) => [k, nothing])));
  const timer = () => ({ unref: nothing, ref: nothing, hasRef: () => false });
  for (const name of ["setTimeout", "setInterval", "setImmediate"]) hidden(name, timer);
  for (const name of ["clearTimeout", "clearInterval", "clearImmediate"]) hidden(name, nothing);
  hidden("queueMicrotask", (f) => void Promise.resolve().then(f));
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "Worker", "Buffer"]) hidden(name, later(name));
  hidden("performance", { now: () => Date.now(), timeOrigin: 0 });
  hidden("process", {
    env: Object.freeze({ ...env }),
    argv: [],
    platform: "linux",
    arch: "x64",
    pid: 1,
    version: "v24.0.0",
    versions: { node: "24.0.0" },
    cwd: () => root,
    on: nothing,
    once: nothing,
    emitWarning: nothing,
    nextTick: (f, ...args) => void Promise.resolve().then(() => f(...args)),
    exit: later("process.exit"),
    kill: later("process.kill"),
  });
  hidden("global", globalThis);

  class EventTarget {
    addEventListener() {}
    removeEventListener() {}
    dispatchEvent() {
      return true;
    }
  }
  class AbortSignal extends EventTarget {
    constructor() {
      super();
      this.aborted = false;
      this.reason = undefined;
    }
    throwIfAborted() {
      if (this.aborted) throw this.reason;
    }
    static timeout() {
      return new AbortSignal();
    }
    static any() {
      return new AbortSignal();
    }
  }
  hidden("EventTarget", EventTarget);
  hidden("Event", class Event {
    constructor(type) {
      this.type = type;
    }
  });
  hidden("AbortSignal", AbortSignal);
  hidden("AbortController", class AbortController {
    constructor() {
      this.signal = new AbortSignal();
    }
    abort(reason) {
      this.signal.aborted = true;
      this.signal.reason = reason ?? new Error("aborted");
    }
  });

  const clone = (v, seen = new Map()) => {
    if (typeof v === "function" || typeof v === "symbol") throw new TypeError("structuredClone of a function or a symbol");
    if (v === null || typeof v !== "object") return v;
    if (seen.has(v)) return seen.get(v);
    if (v instanceof Date) return new Date(v.getTime());
    if (ArrayBuffer.isView(v)) return v.slice();
    const out = v instanceof Map ? new Map() : v instanceof Set ? new Set() : Array.isArray(v) ? [] : {};
    seen.set(v, out);
    if (v instanceof Map) for (const [k, x] of v) out.set(clone(k, seen), clone(x, seen));
    else if (v instanceof Set) for (const x of v) out.add(clone(x, seen));
    else for (const k of Object.keys(v)) out[k] = clone(v[k], seen);
    return out;
  };
  hidden("structuredClone", (v) => clone(v));

  hidden("TextEncoder", class TextEncoder {
    encode(input = "") {
      return new Uint8Array(Array.from(encodeURIComponent(input).matchAll(/%([0-9A-F]{2})|./g), (m) => (m[1] ? parseInt(m[1], 16) : m[0].charCodeAt(0))));
    }
  });
  hidden("TextDecoder", class TextDecoder {
    decode(bytes = []) {
      return decodeURIComponent(Array.from(bytes, (b) => "%" + b.toString(16).padStart(2, "0")).join(""));
    }
  });
  const hex = (n) => Array.from({ length: n }, () => Math.floor(Math.random() * 16).toString(16)).join("");
  hidden("crypto", {
    randomUUID: () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`,
    getRandomValues: (out) => {
      for (let i = 0; i < out.length; i++) out[i] = Math.floor(Math.random() * 2 ** 32);
      return out;
    },
    subtle: new Proxy({}, { get: (_, key) => later(`crypto.subtle.${String(key)}`) }),
  });
});
