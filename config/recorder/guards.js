// guards makes the evaluator's built-in functions safe for hostile code. It runs before any module and is given (host, limits).
//
// The evaluator can be interrupted between two instructions of JavaScript, but not inside a built-in function. So every built-in
// whose work or result a script can make arbitrarily large is replaced here, either by the same thing in JavaScript (loops) or by
// one that asks for a bound first (single allocations). The natives stay reachable only from this closure.
(function (host, limits) {
  "use strict";
  const { apply, construct, ownKeys } = Reflect;
  const natives = {};
  const define = (target, methods) => {
    for (const key of ownKeys(methods))
      Object.defineProperty(target, key, { value: methods[key], writable: true, configurable: true, enumerable: false });
  };
  const spare = (n, most) => (n > most ? host.tooMuch() : n);
  const size = (o) => {
    const n = Math.trunc(Number(o.length)) || 0;
    return n < 0 ? 0 : Math.min(n, Number.MAX_SAFE_INTEGER);
  };
  const from = (i, n, missing) => {
    i = i === undefined ? missing : Math.trunc(Number(i)) || 0;
    return i < 0 ? Math.max(n + i, 0) : Math.min(i, n);
  };
  const callable = (f) => {
    if (typeof f !== "function") throw new TypeError(`${String(f)} is not a function`);
    return f;
  };
  const same = (a, b) => a === b || (a !== a && b !== b);
  const isArray = Array.isArray;
  const copy = (o, start = 0, end = size(o)) => {
    const out = [];
    for (let i = start; i < end; i++) out[i - start] = o[i];
    return out;
  };

  // The evaluator's own instanceof does not take a proxy for a constructor.
  const within = Object.prototype.isPrototypeOf;
  const recognizing = (constructor) =>
    Object.defineProperty(constructor, Symbol.hasInstance, {
      value(v) {
        return (typeof v === "object" || typeof v === "function") && v !== null && apply(within, this.prototype, [v]);
      },
    });

  // --- code from text: it would bypass the bundler's lowering ---
  const refused = function () {
    throw new EvalError("code from text is not evaluated while a module is loaded");
  };
  for (const f of [function () {}, function* () {}, async function () {}]) {
    const proto = Object.getPrototypeOf(f);
    const wrapped = new Proxy(proto === Function.prototype ? recognizing(proto.constructor) : proto.constructor, { apply: refused, construct: refused });
    Object.defineProperty(proto, "constructor", { value: wrapped, writable: false, configurable: false });
    if (proto === Function.prototype) globalThis.Function = wrapped;
  }
  globalThis.eval = refused;

  // --- big integers: their operators cannot be bounded (1n << 2n ** 40n), so there are none; the bundler lowers literals to this ---
  globalThis.BigInt = Object.assign((value) => Number(value), { asIntN: (_, v) => v, asUintN: (_, v) => v });
  delete globalThis.BigInt64Array;
  delete globalThis.BigUint64Array;
  for (const key of ["getBigInt64", "getBigUint64", "setBigInt64", "setBigUint64"]) delete DataView.prototype[key];

  // --- arrays ---
  const push = (out, v) => void (out[out.length] = v);
  const flatten = (out, o, depth) => {
    for (let i = 0, n = size(o); i < n; i++) {
      if (!(i in o)) continue;
      if (depth > 0 && isArray(o[i])) flatten(out, o[i], depth - 1);
      else push(out, o[i]);
    }
    return out;
  };
  const seeking = (back, found) =>
    function (f, self) {
      callable(f);
      const n = size(this);
      for (let k = 0; k < n; k++) {
        const i = back ? n - 1 - k : k;
        if (apply(f, self, [this[i], i, this])) return found(this[i], i);
      }
      return found(undefined, -1);
    };
  const folding = (back) =>
    function (f, ...rest) {
      callable(f);
      const n = size(this);
      let k = 0;
      const at = () => (back ? n - 1 - k : k);
      let acc = rest[0];
      if (rest.length === 0) {
        while (k < n && !(at() in this)) k++;
        if (k >= n) throw new TypeError("Reduce of empty array with no initial value");
        acc = this[at()];
        k++;
      }
      for (; k < n; k++) if (at() in this) acc = f(acc, this[at()], at(), this);
      return acc;
    };
  const joining = new Set();
  const join = function (separator) {
    if (joining.has(this)) return "";
    joining.add(this);
    try {
      const sep = separator === undefined ? "," : String(separator);
      let out = "";
      for (let i = 0, n = size(this); i < n; i++) {
        if (i > 0) out += sep;
        const v = this[i];
        if (v !== undefined && v !== null) out += String(v);
      }
      return out;
    } finally {
      joining.delete(this);
    }
  };
  const values = function () {
    const o = this;
    let i = 0;
    return {
      next() {
        if (i >= size(o)) {
          i = Infinity;
          return { value: undefined, done: true };
        }
        return { value: o[i++], done: false };
      },
      [Symbol.iterator]() {
        return this;
      },
      [Symbol.toStringTag]: "Array Iterator",
    };
  };
  const splice = (o, args) => {
    const n = size(o);
    const start = from(args[0], n, 0);
    const gone = args.length === 0 ? 0 : args.length === 1 ? n - start : Math.min(Math.max(Math.trunc(Number(args[1])) || 0, 0), n - start);
    const removed = copy(o, start, start + gone);
    const tail = copy(o, start + gone, n);
    o.length = start;
    for (let i = 2; i < args.length; i++) push(o, args[i]);
    for (const v of tail) push(o, v);
    return removed;
  };
  natives.sort = Array.prototype.sort;
  const sort = (o, compare) => {
    if (!isArray(o)) throw new TypeError("sort of something that is not an array");
    spare(o.length, limits.items);
    return apply(natives.sort, o, compare === undefined ? [] : [callable(compare)]);
  };
  const list = {
    at(i) {
      const n = size(this);
      i = Math.trunc(Number(i)) || 0;
      return this[i < 0 ? n + i : i];
    },
    concat(...items) {
      const out = copy(this);
      for (const item of items) {
        if (!isArray(item)) {
          push(out, item);
          continue;
        }
        for (let i = 0, n = size(item); i < n; i++) push(out, item[i]);
      }
      return out;
    },
    copyWithin(target, start, end) {
      const n = size(this);
      const moved = copy(this, from(start, n, 0), from(end, n, n));
      for (let i = 0, t = from(target, n, 0); i < moved.length && t < n; i++, t++) this[t] = moved[i];
      return this;
    },
    every(f, self) {
      callable(f);
      for (let i = 0, n = size(this); i < n; i++) if (i in this && !apply(f, self, [this[i], i, this])) return false;
      return true;
    },
    some(f, self) {
      callable(f);
      for (let i = 0, n = size(this); i < n; i++) if (i in this && apply(f, self, [this[i], i, this])) return true;
      return false;
    },
    forEach(f, self) {
      callable(f);
      for (let i = 0, n = size(this); i < n; i++) if (i in this) apply(f, self, [this[i], i, this]);
    },
    map(f, self) {
      callable(f);
      const n = size(this);
      const out = [];
      for (let i = 0; i < n; i++) if (i in this) out[i] = apply(f, self, [this[i], i, this]);
      out.length = n;
      return out;
    },
    filter(f, self) {
      callable(f);
      const out = [];
      for (let i = 0, n = size(this); i < n; i++) if (i in this && apply(f, self, [this[i], i, this])) push(out, this[i]);
      return out;
    },
    fill(value, start, end) {
      const n = size(this);
      for (let i = from(start, n, 0), e = from(end, n, n); i < e; i++) this[i] = value;
      return this;
    },
    find: seeking(false, (v) => v),
    findIndex: seeking(false, (_, i) => i),
    findLast: seeking(true, (v) => v),
    findLastIndex: seeking(true, (_, i) => i),
    flat: function (depth = 1) {
      return flatten([], this, Number(depth));
    },
    flatMap(f, self) {
      return flatten([], apply(list.map, this, [f, self]), 1);
    },
    includes(v, start) {
      for (let n = size(this), i = from(start, n, 0); i < n; i++) if (same(this[i], v)) return true;
      return false;
    },
    indexOf(v, start) {
      for (let n = size(this), i = from(start, n, 0); i < n; i++) if (this[i] === v) return i;
      return -1;
    },
    lastIndexOf(v, ...start) {
      const n = size(this);
      let i = n - 1;
      if (start.length) i = start[0] < 0 ? n + Math.trunc(start[0]) : Math.min(Math.trunc(start[0]), n - 1);
      for (; i >= 0; i--) if (this[i] === v) return i;
      return -1;
    },
    join,
    toString() {
      return typeof this.join === "function" ? this.join() : "[object Array]";
    },
    toLocaleString() {
      return apply(join, this, []);
    },
    reduce: folding(false),
    reduceRight: folding(true),
    reverse() {
      for (let i = 0, j = size(this) - 1; i < j; i++, j--) [this[i], this[j]] = [this[j], this[i]];
      return this;
    },
    slice(start, end) {
      const n = size(this);
      return copy(this, from(start, n, 0), from(end, n, n));
    },
    shift() {
      return splice(this, [0, 1])[0];
    },
    splice(...args) {
      return splice(this, args);
    },
    unshift(...items) {
      splice(this, [0, 0, ...items]);
      return size(this);
    },
    sort(compare) {
      return sort(this, compare);
    },
    toSorted(compare) {
      return sort(copy(this), compare);
    },
    toReversed() {
      return apply(list.reverse, copy(this), []);
    },
    toSpliced(...args) {
      const out = copy(this);
      splice(out, args);
      return out;
    },
    with(i, v) {
      const out = copy(this);
      const k = i < 0 ? out.length + i : i;
      if (k < 0 || k >= out.length) throw new RangeError("Invalid index");
      out[k] = v;
      return out;
    },
    values,
    [Symbol.iterator]: values,
    *keys() {
      for (let i = 0; i < size(this); i++) yield i;
    },
    *entries() {
      for (let i = 0; i < size(this); i++) yield [i, this[i]];
    },
  };
  define(Array.prototype, list);
  const collect = (source, f, self) => {
    const out = [];
    if (source === undefined || source === null) throw new TypeError("Array.from of nothing");
    if (source[Symbol.iterator] !== undefined && source[Symbol.iterator] !== null) {
      let i = 0;
      for (const v of source) push(out, f ? apply(f, self, [v, i++]) : v);
    } else {
      for (let i = 0, n = size(source); i < n; i++) push(out, f ? apply(f, self, [source[i], i]) : source[i]);
    }
    return out;
  };
  const guarded = (name, check) => {
    const native = globalThis[name];
    const wrapped = new Proxy(native, {
      apply: (target, self, args) => apply(target, self, check(args)),
      construct: (target, args, made) => construct(target, check(args), made),
    });
    Object.defineProperty(native.prototype, "constructor", { value: wrapped, writable: true, configurable: true });
    globalThis[name] = wrapped;
    return recognizing(native);
  };
  define(Array, { from: (source, f, self) => collect(source, f, self), of: (...items) => items });
  guarded("Array", (args) => (args.length === 1 && typeof args[0] === "number" ? [spare(args[0], limits.items)] : args));

  // --- typed arrays and buffers: one allocation each ---
  natives.ArrayBuffer = guarded("ArrayBuffer", (args) => [spare(Number(args[0]) || 0, limits.bytes)]);
  const typed = Object.getPrototypeOf(Uint8Array);
  for (const name of ["Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array", "Float32Array", "Float64Array"]) {
    const width = globalThis[name].BYTES_PER_ELEMENT;
    const native = guarded(name, (args) => {
      const [first] = args;
      if (typeof first !== "object" || first === null) return [spare((Number(first) || 0) * width, limits.bytes) / width];
      if (first instanceof natives.ArrayBuffer || ArrayBuffer.isView(first)) return args;
      return [collect(first)];
    });
    define(native, { from: (source, f, self) => new globalThis[name](collect(source, f, self)), of: (...items) => new globalThis[name](items) });
  }
  const set = typed.prototype.set;
  define(typed.prototype, {
    join,
    set(source, offset) {
      return apply(set, this, [ArrayBuffer.isView(source) ? source : collect(source), offset]);
    },
    [Symbol.iterator]: values,
    values,
  });

  // --- calls with a list of arguments ---
  const args = (o) => {
    if (o === undefined || o === null) return [];
    const n = spare(size(o), limits.args);
    return copy(o, 0, n);
  };
  define(Function.prototype, {
    apply(self, o) {
      return apply(this, self, args(o));
    },
  });
  define(Reflect, {
    apply: (f, self, o) => apply(f, self, args(o)),
    construct: (f, o, ...made) => construct(f, args(o), ...made),
  });

  // --- strings ---
  const text = String.prototype;
  const { repeat, padStart, padEnd, replace, replaceAll, split } = text;
  const growth = (self, pattern, by) => {
    if (typeof by === "function") return;
    by = String(by);
    let factor = by.length + 1;
    if (by.includes("$`") || by.includes("$'")) factor *= self.length + 1;
    spare((self.length + 1) * factor, limits.chars * 8);
  };
  const swap = (native) =>
    function (pattern, by) {
      const self = String(this);
      if (typeof by !== "function") by = String(by);
      growth(self, pattern, by);
      return apply(native, self, [pattern, by]);
    };
  const pad = (native) =>
    function (n, filler) {
      return apply(native, String(this), filler === undefined ? [spare(Number(n) || 0, limits.chars)] : [spare(Number(n) || 0, limits.chars), String(filler)]);
    };
  define(text, {
    repeat(n) {
      const self = String(this);
      n = Math.trunc(Number(n)) || 0;
      spare(self.length * n, limits.chars);
      return apply(repeat, self, [n]);
    },
    padStart: pad(padStart),
    padEnd: pad(padEnd),
    replace: swap(replace),
    replaceAll: swap(replaceAll),
    split(...rest) {
      const self = String(this);
      spare(self.length, limits.items);
      return apply(split, self, rest);
    },
    concat(...items) {
      let out = String(this);
      for (const item of items) out += String(item);
      return out;
    },
  });
  define(String, {
    raw({ raw }, ...inserts) {
      let out = "";
      for (let i = 0, n = size(raw); i < n; i++) out += String(raw[i]) + (i < n - 1 && i < inserts.length ? String(inserts[i]) : "");
      return out;
    },
  });

  // --- regular expressions: some need backtracking, which may take for ever on 30 characters ---
  guarded("RegExp", (given) => {
    const [pattern] = given;
    if (typeof pattern === "string") spare(pattern.length, limits.pattern);
    return given;
  });
  const exec = RegExp.prototype.exec;
  const backtracks = /\(\?<?[=!]|\\[1-9k]/;
  const source = Object.getOwnPropertyDescriptor(RegExp.prototype, "source").get;
  define(RegExp.prototype, {
    exec(input) {
      input = String(input);
      const pattern = apply(source, this, []);
      if (apply(exec, backtracks, [pattern])) weigh(pattern, input);
      return apply(exec, this, [input]);
    },
    test(input) {
      return this.exec(input) !== null;
    },
  });
  const weigh = (pattern, input) => {
    let quantifiers = 0;
    let nested = false;
    const open = [];
    for (let i = 0; i < pattern.length; i++) {
      const c = pattern[i];
      if (c === "\\") i++;
      else if (c === "[") while (++i < pattern.length && pattern[i] !== "]") pattern[i] === "\\" && i++;
      else if (c === "(") open[open.length] = quantifiers;
      else if (c === ")") {
        const inner = quantifiers - (open.length ? open[open.length - 1] : 0);
        if (open.length) open.length--;
        if (inner > 0 && "*+{".includes(pattern[i + 1] ?? " ")) nested = true;
      } else if (c === "*" || c === "+" || c === "{") quantifiers++;
    }
    if (nested ? input.length > 20 : Math.pow(input.length + 1, quantifiers) > 1e8)
      throw new RangeError(`the regular expression /${pattern.slice(0, 80)}/ could take too long while a module is loaded`);
  };

  // --- JSON: both directions recurse natively ---
  const parse = JSON.parse;
  const quote = JSON.stringify;
  const stringify = (value, replacer, space) => {
    const indent = typeof space === "number" ? apply(repeat, " ", [Math.min(Math.max(space, 0), 10)]) : typeof space === "string" ? space.slice(0, 10) : "";
    const above = new Set();
    const one = (holder, key, pad) => {
      let v = holder[key];
      if (v !== null && typeof v === "object" && typeof v.toJSON === "function") v = v.toJSON(key);
      if (typeof replacer === "function") v = apply(replacer, holder, [key, v]);
      if (v === null) return "null";
      if (v instanceof Number || v instanceof String || v instanceof Boolean) v = v.valueOf();
      if (typeof v === "string") return quote(v);
      if (typeof v === "number") return isFinite(v) ? String(v) : "null";
      if (typeof v === "boolean") return String(v);
      if (typeof v !== "object") return undefined;
      if (above.has(v)) throw new TypeError("Converting circular structure to JSON");
      above.add(v);
      const deeper = pad + indent;
      const parts = [];
      if (isArray(v)) {
        for (let i = 0, n = size(v); i < n; i++) push(parts, one(v, String(i), deeper) ?? "null");
      } else {
        for (const k of isArray(replacer) ? replacer : Object.keys(v)) {
          const inner = one(v, k, deeper);
          if (inner !== undefined) push(parts, quote(String(k)) + (indent ? ": " : ":") + inner);
        }
      }
      above.delete(v);
      const [l, r] = isArray(v) ? "[]" : "{}";
      if (parts.length === 0) return l + r;
      return indent ? `${l}\n${deeper}${apply(join, parts, [`,\n${deeper}`])}\n${pad}${r}` : l + apply(join, parts, [","]) + r;
    };
    return one({ "": value }, "", "");
  };
  define(JSON, {
    stringify,
    parse(input, reviver) {
      input = spare(String(input).length, limits.chars) && String(input);
      let depth = 0;
      for (let i = 0; i < input.length; i++) {
        const c = input[i];
        if (c === "[" || c === "{") depth++;
        else if (c === "]" || c === "}") depth--;
        if (depth > limits.depth) throw new SyntaxError("JSON is nested too deeply");
      }
      return typeof reviver === "function" ? parse(input, reviver) : parse(input);
    },
  });
});
