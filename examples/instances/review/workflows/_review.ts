import { and, assign, stateIn } from "xstate";
import { z } from "zod";
import { agent, defineEvent, jr2Setup, open, workspace, type Workspaced } from "@jr2/orchestrator";
const drafted = defineEvent({ name: "drafted", audience: "agent", input: z.object({ summary: z.string() }) });
const verdict = defineEvent({ name: "verdict", audience: "agent", input: z.object({ ok: z.boolean(), notes: z.string() }) });
const merge = defineEvent({ name: "merge", audience: "external", input: z.object({}) });
const door = z.object({ prompt: z.string(), branch: z.string(), rounds: z.number().int().positive().default(2) });
type Input = Workspaced<z.infer<typeof door>, "target" | "handbook">;
type Ctx = Input & { spent: number; notes: string[] };
const loop = jr2Setup({
  types: {} as { input: Input; context: Ctx; output: { spent: number } },
  events: [drafted, verdict, merge],
  actors: {
    author: agent({ model: open, instructions: "Make the change, commit it, then call drafted." }),
    critic: agent({
      model: "anthropic/claude-sonnet-4-6",
      workspace: "read",
      thinkingLevel: "high",
      instructions: "Read the diff. Call verdict exactly once.",
    }),
  },
  guards: { roundsLeft: ({ context }: { context: Ctx }) => context.spent < context.rounds },
}).createMachine({
  id: "review-loop",
  context: ({ input }) => ({ ...input, spent: 0, notes: [] }),
  initial: "writing",
  on: { "workspace.lost": ".ended" },
  states: {
    writing: {
      invoke: {
        src: "author",
        input: ({ context: c }) => ({ prompt: [c.prompt, ...c.notes].join("\n"), cwd: c.workspace.repos.target }),
      },
      on: { drafted: "judging", "agent.fault": "asking" },
    },
    judging: {
      invoke: { src: "critic", input: ({ context: c }) => ({ prompt: "Judge it.", cwd: c.workspace.repos.target }) },
      on: {
        verdict: [
          {
            guard: and([({ event }) => !event.ok, "roundsLeft", stateIn("judging")]),
            target: "writing",
            actions: assign({
              spent: ({ context }) => context.spent + 1,
              notes: ({ context, event }) => [...context.notes, event.notes],
            }),
          },
          { target: "asking" },
        ],
        "agent.fault": "asking",
      },
    },
    asking: { invoke: { src: "gate" }, on: { merge: "ended" } },
    ended: { type: "final" },
  },
  output: ({ context }) => ({ spent: context.spent }),
});
export const review = workspace(loop, {
  input: door,
  image: import.meta.resolve("./toolbox"),
  user: { image: "registry.example.com/team/ide:1.4", resources: { limits: { memory: "1Gi", cpu: "500m" } } },
  resources: { limits: { memory: "6Gi", cpu: "3" } },
  repos: { target: open, handbook: { url: "git@git.example.test:team/handbook.git", ref: "stable" } },
  spec: ({ input }) => ({ branch: input.branch }),
});
