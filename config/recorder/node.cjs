// node:* modules. Their names exist, because workflows import them for their actors; a call while a module is loaded throws. The
// pure ones (path, url, util.promisify) work.
const later = (name) =>
  function () {
    throw new Error(`${name} is not available while a module is loaded`);
  };
const named = (name, known = {}) => {
  const rest = new Proxy({}, { get: (_, key) => (typeof key === "string" && key !== "then" && key !== "__esModule" ? later(`${name}.${key}`) : undefined) });
  return Object.assign(Object.create(rest), known);
};

const segments = (path) => {
  const out = [];
  for (const s of path.split("/")) {
    if (s === "..") out.length && out[out.length - 1] !== ".." ? out.pop() : path[0] === "/" || out.push(s);
    else if (s && s !== ".") out.push(s);
  }
  return out;
};
const normalize = (path) => (path[0] === "/" ? "/" : "") + segments(path).join("/") || ".";
const path = {
  sep: "/",
  delimiter: ":",
  normalize,
  join: (...parts) => normalize(parts.filter(Boolean).join("/")),
  resolve: (...parts) => normalize(parts.reduce((at, p) => (p[0] === "/" ? p : `${at}/${p}`), process.cwd())),
  isAbsolute: (p) => p[0] === "/",
  dirname: (p) => p.replace(/\/+$/, "").replace(/\/?[^/]*$/, "") || (p[0] === "/" ? "/" : "."),
  basename: (p, ext = "") => {
    const base = p.replace(/\/+$/, "").replace(/^.*\//, "");
    return ext && base !== ext && base.endsWith(ext) ? base.slice(0, -ext.length) : base;
  },
  extname: (p) => (/[^./][^/]*?(\.[^./]*)$/.exec(p) ?? ["", ""])[1],
  relative: (from, to) => {
    const a = segments(path.resolve(from));
    const b = segments(path.resolve(to));
    let same = 0;
    while (same < a.length && a[same] === b[same]) same++;
    return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
  },
};
path.posix = path;

const url = {
  URL,
  URLSearchParams,
  fileURLToPath: (value) => decodeURIComponent(new URL(value).pathname),
  pathToFileURL: (p) => new URL("file://" + path.resolve(p).split("/").map(encodeURIComponent).join("/")),
};

module.exports = (name) => {
  switch (name) {
    case "path":
    case "path/posix":
      return named(name, path);
    case "url":
      return named(name, url);
    case "util":
      return named(name, { promisify: () => later("a promisified function"), inspect: String, TextEncoder, TextDecoder });
    case "process":
      return process;
    case "crypto":
      return named(name, { randomUUID: crypto.randomUUID, webcrypto: crypto });
  }
  return named(name);
};
