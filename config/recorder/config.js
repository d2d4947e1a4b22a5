// The part of @jr2/orchestrator that jr2.config.ts uses; it stands alone so that a configuration's bundle holds nothing else.
export const defineConfig = (config) => config;
