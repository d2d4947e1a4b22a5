// The shapes of a Workspace's parts: images (W7), Repo Slots (W8 to W10) and Sizes (W11).
import { isMap, open, refuse, say } from "jr2:state";

export function checkImage(caller, key, value) {
  if (value === undefined) return undefined;
  if (typeof value !== "string" || value.trim() === "")
    refuse("W7", `${caller}: ${key} is ${say(value)} — want a registry ref or the file: string of a folder; import.meta.resolve gives one`);
  return value;
}

export function checkUser(caller, value) {
  if (isMap(value) && !(value instanceof URL)) {
    for (const key of Object.keys(value))
      if (key !== "image" && key !== "resources") refuse("W11", `${caller}: user.${key} is no key — image, resources`);
    return {
      user: checkImage(caller, "user.image", value.image) ?? refuse("W7", `${caller}: user.image is missing`),
      userSize: checkSize(`${caller}: user.resources`, value.resources),
    };
  }
  return { user: checkImage(caller, "user", value), userSize: {} };
}

export function checkRepos(caller, repos) {
  if (repos === open) return open;
  if (!isMap(repos)) refuse("W8", `${caller}: repos is ${say(repos)} — want a map of Repo Slots, or open`);
  const slots = Object.entries(repos);
  if (slots.length === 0) refuse("W8", `${caller}: repos is empty — name at least one Repo Slot, or open`);
  return slots.map(([slot, value]) => repoValue(caller, slot, value));
}

export function repoValue(caller, slot, value) {
  const where = `${caller}: repos.${slot}`;
  if (!/^[A-Za-z][A-Za-z0-9._-]*$/.test(slot))
    refuse("W9", `${caller}: repos: ${say(slot)} is no Repo Slot name — a letter, then letters, digits, ".", "_", "-": it becomes /work/<slot>`);
  if (value === open) return { slot, state: "open" };
  if (typeof value === "function") return { slot, state: "perRun" };
  const bound = typeof value === "string" ? { url: value } : value;
  if (!isMap(bound) || typeof bound.url !== "string")
    refuse("W10", `${where} is ${say(value)} — want a url, { url, ref? }, a function of the input, or open`);
  for (const key of Object.keys(bound))
    if (key !== "url" && key !== "ref") refuse("W10", `${where}.${key} is no key — url, ref`);
  if (bound.ref !== undefined && (typeof bound.ref !== "string" || bound.ref.trim() === ""))
    refuse("W10", `${where}.ref is ${say(bound.ref)} — want a branch, a tag or a commit`);
  const problem = jr2host.repoProblem(bound.url);
  if (problem) refuse("W10", `${where}: ${problem}`);
  return { slot, state: "bound", url: bound.url, ref: bound.ref };
}

const quantity = /^\s*([0-9]+(\.[0-9]*)?|\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?\s*$/;

export function checkSize(where, value) {
  if (value === undefined) return {};
  if (!isMap(value)) refuse("W11", `${where} is ${say(value)} — want { limits: { memory?, cpu? } }`);
  for (const key of Object.keys(value)) {
    if (key === "requests") refuse("W11", `${where}.requests: every request equals its limit — state limits alone`);
    if (key !== "limits") refuse("W11", `${where}.${key} is no key — limits`);
  }
  const { limits } = value;
  if (limits === undefined) return {};
  if (!isMap(limits)) refuse("W11", `${where}.limits is ${say(limits)} — want { memory?, cpu? }`);
  const size = {};
  for (const [key, stated] of Object.entries(limits)) {
    if (key !== "memory" && key !== "cpu") refuse("W11", `${where}.limits.${key} is no key — memory, cpu`);
    if (stated === undefined) continue;
    const text = typeof stated === "number" && isFinite(stated) ? String(stated) : stated;
    if (typeof text !== "string" || text.length > 64 || (typeof stated === "string" && !quantity.test(text)) || !(parseFloat(text) > 0))
      refuse("W11", `${where}.limits.${key} is ${say(stated)} — want a quantity above zero, such as ${key === "cpu" ? '"500m"' : '"2Gi"'}`);
    size[key] = stated;
  }
  return size;
}
