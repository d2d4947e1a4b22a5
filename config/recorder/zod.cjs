// A stand-in for zod, for an Instance that has no node_modules yet: one value that answers every property and every call with
// itself. It is an arrow function, so that it has no `prototype` key and may hide its own keys.
const special = {
  then: undefined, // else await hangs
  __esModule: undefined,
  parse: (value) => value,
  parseAsync: async (value) => value,
  safeParse: (data) => ({ success: true, data }),
  toJSONSchema: () => ({}),
};
const any = new Proxy(() => any, {
  get(target, key) {
    if (key === Symbol.iterator) return [][Symbol.iterator].bind([]);
    if (key === Symbol.toPrimitive) return () => "zod";
    if (typeof key === "symbol") return undefined;
    return key in special ? special[key] : any;
  },
  apply: () => any,
  construct: () => any,
  has: () => true,
  getOwnPropertyDescriptor: () => undefined,
  ownKeys: () => [],
});
// Named imports read from a copy whose prototype is this value's: the answers must sit there.
module.exports = Object.create(any, { z: { value: any, enumerable: true } });
