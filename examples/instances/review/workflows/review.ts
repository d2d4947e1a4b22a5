import { customize } from "@jr2/orchestrator";
import { review } from "./_review.ts";
export const machine = customize(review, {
  agents: { author: { model: "anthropic/claude-sonnet-4-6", thinkingLevel: "medium" } },
  repos: { target: { url: "https://git.example.test/team/service.git", ref: "main" } },
  resources: { limits: { memory: "8Gi" } },
});
