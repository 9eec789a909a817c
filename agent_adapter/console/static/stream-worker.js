// Holds the event stream for all pages of a browser: six connections to one host are all it has.
import { Stream } from "./stream.js";

const stream = new Stream((port, message) => port.postMessage(message));

self.addEventListener("connect", (event) => {
  const [port] = event.ports;
  port.addEventListener("message", ({ data }) => {
    if (data === "gone") stream.remove(port);
    else if (data === "online") stream.hurry();
    else stream.update(port, data);
  });
  port.start();
});
