// A pad to draw on: black on white in every colour scheme, because that is what the network is given.

const THICK = 1 / 20; // of the width

export function fileOf(canvas, name = "drawing.png") {
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => {
      if (blob) resolve(new File([blob], name, { type: "image/png" }));
      else reject(new Error("the drawing could not be made a picture"));
    }, "image/png");
  });
}

export class Pad {
  #canvas;
  #context;
  #stroke = null; // the pointer that draws, its last point, and the middle between its last two
  #isBlank = true;

  // onInk: something is drawn, or all is gone; onStroke: the pen was lifted.
  constructor(canvas, { onInk = () => {}, onStroke = () => {} } = {}) {
    this.#canvas = canvas;
    this.#context = canvas.getContext("2d");
    this.onInk = onInk;
    this.onStroke = onStroke;
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) {
      canvas.addEventListener(end, (event) => this.#up(event));
    }
    this.#wipe();
  }

  get isBlank() {
    return this.#isBlank;
  }

  clear() {
    this.#stroke = null;
    this.#isBlank = true;
    this.#wipe();
    this.onInk();
  }

  #wipe() {
    this.#context.fillStyle = "#fff"; // without it a drawing would be black on nothing
    this.#context.fillRect(0, 0, this.#canvas.width, this.#canvas.height);
  }

  file() {
    return fileOf(this.#canvas);
  }

  // A copy of what is drawn; the pad is free for the next drawing at once.
  take() {
    const copy = document.createElement("canvas");
    copy.width = this.#canvas.width;
    copy.height = this.#canvas.height;
    copy.getContext("2d").drawImage(this.#canvas, 0, 0);
    this.clear();
    return copy;
  }

  // Unless another one has been begun.
  putBack(copy) {
    if (!this.#isBlank) return;
    this.#context.drawImage(copy, 0, 0);
    this.#isBlank = false;
    this.onInk();
  }

  #point(event) {
    const box = this.#canvas.getBoundingClientRect();
    const scale = this.#canvas.width / box.width;
    return { x: (event.clientX - box.left) * scale, y: (event.clientY - box.top) * scale };
  }

  #down(event) {
    if (this.#stroke || event.button !== 0) return; // a second finger does not draw
    event.preventDefault();
    const point = this.#point(event);
    this.#stroke = { pointer: event.pointerId, last: point, middle: point };
    this.#line(point, point, point); // a tap is a dot
    this.#isBlank = false;
    this.onInk();
    this.#canvas.setPointerCapture(event.pointerId);
  }

  #move(event) {
    if (this.#stroke?.pointer !== event.pointerId) return;
    const passed = event.getCoalescedEvents?.() ?? [];
    for (const each of passed.length ? passed : [event]) {
      const point = this.#point(each);
      const { last, middle } = this.#stroke;
      const half = { x: (last.x + point.x) / 2, y: (last.y + point.y) / 2 };
      this.#line(middle, last, half); // from middle to middle, bent by the point between: no corners
      this.#stroke.last = point;
      this.#stroke.middle = half;
    }
  }

  #up(event) {
    if (this.#stroke?.pointer !== event.pointerId) return;
    const { last, middle } = this.#stroke;
    this.#line(middle, last, last);
    this.#stroke = null;
    this.onStroke();
  }

  #line(from, by, to) {
    const context = this.#context;
    context.strokeStyle = "#000";
    context.lineWidth = this.#canvas.width * THICK;
    context.lineCap = context.lineJoin = "round";
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.quadraticCurveTo(by.x, by.y, to.x, to.y);
    context.stroke();
  }
}
