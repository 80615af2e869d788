// Search needs a worker, and a page that was opened as a file may start none: its script runs in a hidden frame instead.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame = document.createElement("iframe");
    #ready;

    constructor(script) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.document.open();
      inside.document.write("<!doctype html><body></body>");
      inside.document.close();
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) =>
        urls.reduce((before, url) => before.then(() => this.#load(url)), Promise.resolve());
      this.#ready = this.#load(script);
    }

    postMessage(data) {
      const message = { data: structuredClone(data) };
      this.#ready.then(() => this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", message)));
    }

    terminate() {
      this.#frame.remove();
    }

    #load(url) {
      const element = this.#frame.contentDocument.createElement("script");
      const loaded = new Promise((resolve, reject) => {
        element.onload = resolve;
        element.onerror = reject;
      });
      element.src = url;
      this.#frame.contentDocument.body.append(element);
      return loaded;
    }
  };
}
