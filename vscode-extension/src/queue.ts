/** Runs tasks one after the other; of the waiting tasks, only the last one runs (two requested restarts become one). */
export class LatestQueue {
  private current: Promise<void> | undefined;
  private next: (() => Promise<void>) | undefined;

  /** Resolves when no task is left; rejects if the last one failed. */
  run(task: () => Promise<void>): Promise<void> {
    this.next = task;
    this.current ??= this.drain().finally(() => {
      this.current = undefined;
    });
    return this.current;
  }

  private async drain(): Promise<void> {
    let failure: unknown;
    for (let task = this.next; task !== undefined; task = this.next) {
      this.next = undefined;
      failure = undefined;
      try {
        await task();
      } catch (error) {
        failure = error;
      }
    }
    if (failure !== undefined) {
      throw failure instanceof Error ? failure : new Error(JSON.stringify(failure));
    }
  }
}
