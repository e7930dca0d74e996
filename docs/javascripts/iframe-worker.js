// A browser starts no worker for a page from the disk. The search is in one: there it runs in a frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const base = new URL(url, document.baseURI)
      const inside = (this.inside = frame.contentWindow)
      const load = (one) =>
        new Promise((loaded, failed) => {
          const script = frame.contentDocument.createElement("script")
          Object.assign(script, { src: new URL(one, base).href, onload: loaded, onerror: failed })
          frame.contentDocument.body.append(script)
        })
      inside.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => load(one)), Promise.resolve())
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }))
      this.ready = load(base)
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.inside.frameElement.remove()
    }
  }
}
