import { readFile, writeFile } from "node:fs/promises";

export interface Settings {
  theme: "light" | "dark";
  pageSize: number;
}

const DEFAULTS: Settings = { theme: "light", pageSize: 25 };

export class SettingsStore {
  private queue: Promise<void> = Promise.resolve();

  constructor(private readonly path: string) {}

  async load(): Promise<Settings> {
    try {
      return { ...DEFAULTS, ...JSON.parse(await readFile(this.path, "utf8")) };
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") {
        return DEFAULTS;
      }
      throw error;
    }
  }

  /** Changes are made one after the other, each on top of the one before. */
  update(change: Partial<Settings>): Promise<void> {
    const next = this.queue.then(() => this.apply(change));
    this.queue = next.catch(() => undefined);
    return next;
  }

  private async apply(change: Partial<Settings>): Promise<void> {
    const now = await this.load();
    await writeFile(this.path, JSON.stringify({ ...now, ...change }), "utf8");
  }
}
