// @jr2/orchestrator as workflows import it. The functions build inert Machines and remember what a converge needs; nothing that an
// author wrote as a callback is ever called. A name that is not exported here is for the host, and the bundler names the mistake.
export * from "jr2:protocol";
export { open } from "jr2:state";
export { defineConfig } from "jr2:config";
export { agent, gate, jr2Setup, source } from "jr2:machines";
export { workspace, pool, customize } from "jr2:workspace";
