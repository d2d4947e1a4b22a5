import { z } from "zod";
import { defineEvent, jr2Setup, workspace, type Workspaced } from "@jr2/orchestrator";
const release = defineEvent({ name: "release", audience: "external", input: z.object({ note: z.string().optional() }) });
const door = z.object({ branch: z.string().min(1).describe("Branch to hold a checkout of.") });
type Types = { input: Workspaced<z.infer<typeof door>, "app">; context: { where: string }; output: { held: string } };
const body = jr2Setup({ types: {} as Types, events: [release] }).createMachine({
  id: "hold-body",
  context: ({ input }) => ({ where: input.workspace.repos.app }),
  initial: "holding",
  on: { "workspace.lost": ".ended" },
  states: {
    holding: {
      invoke: { src: "gate", input: ({ context }) => ({ meta: { where: context.where } }) },
      on: { release: "ended" },
    },
    ended: { type: "final" },
  },
  output: ({ context }) => ({ held: context.where }),
});
export const machine = workspace(body, {
  input: door,
  resources: { limits: { memory: "3Gi", cpu: "1500m" } },
  repos: { app: "https://git.example.test/team/app.git" },
  spec: ({ input }) => ({ branch: input.branch }),
});
