// Asks one model the way an Agent does, and says what came back. It runs in the Harness image, by that image's own node.
// $JR2_MODEL_PROBE is the question; the answer is one line of JSON on stdout and in the message with which the container ends.
// Both forms are those of modelQuestion and modelAnswer in package preflight. Exit code 0 means that there is an answer.
const { writeFileSync } = require("node:fs");
const ask = JSON.parse(process.env.JR2_MODEL_PROBE);
const key = ask.keys.map((name) => process.env[name]).find(Boolean);
const base = ask.baseUrl.replace(/\/+$/, "");
const tool = { type: "object", properties: { ready: { type: "boolean" } }, required: ["ready"] };
const about = "Says whether you are ready.";
const please = "Call the tool report with ready set to true. Say nothing else.";

const wires = {
  "openai-completions": {
    list: "/models",
    path: "/chat/completions",
    body: () => ({
      model: ask.model,
      max_tokens: ask.tokens,
      messages: [{ role: "user", content: please }],
      tools: [{ type: "function", function: { name: "report", description: about, parameters: tool } }],
    }),
    tool: (b) => Boolean(b.choices?.[0]?.message?.tool_calls?.length),
    said: (b) => b.choices?.[0]?.message?.content,
  },
  "openai-responses": {
    list: "/models",
    path: "/responses",
    body: () => ({
      model: ask.model,
      max_output_tokens: ask.tokens,
      input: please,
      tools: [{ type: "function", name: "report", description: about, parameters: tool }],
    }),
    tool: (b) => Boolean(b.output?.some((o) => o.type === "function_call")),
    said: (b) => b.output?.flatMap((o) => o.content ?? []).map((c) => c.text ?? "").join(""),
  },
  "anthropic-messages": {
    list: "/v1/models",
    path: "/v1/messages",
    body: () => ({
      model: ask.model,
      max_tokens: ask.tokens,
      messages: [{ role: "user", content: please }],
      tools: [{ name: "report", description: about, input_schema: tool }],
    }),
    tool: (b) => Boolean(b.content?.some((c) => c.type === "tool_use")),
    said: (b) => b.content?.map((c) => c.text ?? "").join(""),
  },
};
const wire = wires[ask.api];

function headers() {
  const all = { "content-type": "application/json" };
  if (ask.api === "anthropic-messages") all["anthropic-version"] = "2023-06-01";
  if (key && ask.keyHeader === "x-api-key") all["x-api-key"] = key;
  else if (key) all.authorization = `Bearer ${key}`;
  return all;
}

// short leaves the key out, which some servers repeat, and what a termination message has no room for.
function short(text, length) {
  const clean = String(text ?? "").replace(/\s+/g, " ").trim();
  return (key ? clean.replaceAll(key, "…") : clean).slice(0, length);
}

async function call(path, body, seconds) {
  const reply = await fetch(base + path, {
    method: body ? "POST" : "GET",
    headers: headers(),
    body: body && JSON.stringify(body),
    signal: AbortSignal.timeout(seconds * 1000),
  });
  return { status: reply.status, text: await reply.text() };
}

function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

async function list(answer) {
  try {
    const { status, text } = await call(wire.list, undefined, Math.min(15, ask.seconds));
    answer.listStatus = status;
    if (status < 200 || status > 299) return;
    const data = parsed(text).data;
    if (!Array.isArray(data)) return;
    const ids = data.map((m) => String(m?.id ?? ""));
    answer.listed = ids.length;
    answer.found = ids.includes(ask.model);
    answer.models = ids.slice(0, 8).map((id) => short(id, 60));
  } catch {
    // The question after this one meets the same.
  }
}

// complete tries again what ends by itself: a busy endpoint, a network that a new pod does not have yet.
async function complete(answer) {
  for (let tries = 1; ; tries++) {
    try {
      const { status, text } = await call(wire.path, wire.body(), ask.seconds);
      const body = parsed(text);
      const good = status >= 200 && status <= 299;
      answer.error = undefined;
      answer.status = status;
      answer.tool = good && wire.tool(body);
      answer.text = short(good ? wire.said(body) || text : text, 400);
      if (tries === 3 || (status !== 429 && status < 500)) return;
    } catch (e) {
      answer.error = short([e.message, e.cause?.code, e.cause?.message].filter(Boolean).join(": "), 300);
      if (tries === 3 || e.name === "TimeoutError") return;
    }
    await new Promise((done) => setTimeout(done, ask.pause * tries));
  }
}

(async () => {
  const answer = { status: 0, tool: false };
  await list(answer);
  await complete(answer);
  const line = JSON.stringify(answer);
  console.log(line);
  writeFileSync(ask.answer, line);
})();
