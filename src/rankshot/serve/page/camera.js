// Pictures from the camera, in a dialog that stays open for the next one where several are wanted.

import { Problem } from "./api.js";
import { complain } from "./messages.js";
import { byId, write } from "./nodes.js";

const SIDE = 640; // pixels: more than any of the networks looks at

export const isThere = () => Boolean(window.isSecureContext && navigator.mediaDevices?.getUserMedia);

const dialog = byId("camera");
const video = byId("camera-video");
let use = null;
let opened = 0; // counts, so that a camera that starts after its dialog was closed is stopped

const WHY = {
  NotAllowedError: "The camera was not allowed.",
  NotFoundError: "There is no camera.",
  NotReadableError: "The camera is in use elsewhere.",
};

// take(file) promises what to say about it; a thrown Problem is said too.
export async function open(title, take) {
  const number = ++opened;
  let stream;
  try {
    stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" }, audio: false });
  } catch (error) {
    complain(new Problem(WHY[error.name] ?? "The camera could not be started."));
    return;
  }
  if (number !== opened) {
    stop(stream);
    return;
  }
  use = take;
  write(byId("camera-title"), title);
  write(byId("camera-said"), "");
  video.srcObject = stream;
  dialog.showModal();
}

export const close = () => dialog.close();

function stop(stream) {
  for (const track of stream?.getTracks() ?? []) track.stop();
}

// The square in the middle, as the dialog shows it.
function picture() {
  const side = Math.min(video.videoWidth, video.videoHeight);
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = Math.min(side, SIDE);
  const [left, top] = [(video.videoWidth - side) / 2, (video.videoHeight - side) / 2];
  canvas.getContext("2d").drawImage(video, left, top, side, side, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => {
    canvas.toBlob((blob) => resolve(new File([blob], "camera.jpg", { type: "image/jpeg" })), "image/jpeg", 0.92);
  });
}

byId("camera-take").addEventListener("click", async () => {
  if (!video.videoWidth) return; // it has not begun yet
  try {
    write(byId("camera-said"), (await use(await picture())) ?? "");
  } catch (error) {
    write(byId("camera-said"), error instanceof Problem ? error.message : "The picture could not be taken.");
  }
});
byId("camera-close").addEventListener("click", close);
dialog.addEventListener("close", () => {
  opened++;
  stop(video.srcObject);
  video.srcObject = null;
});

export function explain() {
  for (const node of document.querySelectorAll(".no-camera")) {
    node.hidden = isThere();
    write(node, "The browser allows the camera only on this machine or over https.");
  }
}
