// Questions to the worker, answers from it. Of questions of one kind only the newest is worth an answer.
export class Python {
  constructor(onReady, onFailed) {
    this.waiting = new Map();
    this.number = 0;
    this.newest = {};
    this.isReady = false;
    this.worker = new Worker(new URL("./worker.mjs", import.meta.url), { type: "module" });
    this.worker.onerror = (event) => onFailed(event.message || "the worker could not be started");
    this.worker.onmessage = ({ data }) => {
      if (data.ready) { this.isReady = true; onReady(data); return; }
      if (data.number === undefined) { onFailed(data.failed); return; }
      const { resolve, reject } = this.waiting.get(data.number);
      this.waiting.delete(data.number);
      if (data.failed) reject(new Error(data.failed));
      else resolve(JSON.parse(data.answer));
    };
  }

  // The answer, or null if a newer question of its kind came meanwhile.
  async ask(kind, question) {
    const number = this.number += 1;
    this.newest[kind] = number;
    const answered = new Promise((resolve, reject) => this.waiting.set(number, { resolve, reject }));
    this.worker.postMessage({ number, question: JSON.stringify({ ask: kind, ...question }) });
    const answer = await answered;
    if (this.newest[kind] !== number) return null;
    if (answer.error) throw new Error(answer.error.message);
    return answer;
  }
}
