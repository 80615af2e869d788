/** Runs a task once, a delay after the last call. Pure. */
export class Debounced {
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly task: () => void) {}

  call(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.task();
    }, milliseconds);
  }

  dispose(): void {
    clearTimeout(this.timer);
  }
}
