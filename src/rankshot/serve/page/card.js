// One class: its name, its examples, and every way to give it more.

import * as api from "./api.js";
import * as camera from "./camera.js";
import { lookable } from "./look.js";
import { keyed, make, write } from "./nodes.js";
import { whenChosen, whenDropped } from "./pictures.js";
import { thumbnail } from "./thumbs.js";

// acts: what can be done with a class; see teach.js
export class Card {
  #acts;
  #class;
  #name = make("h3", { className: "class-name" });
  #count = make("p", { className: "count soft" });
  #examples = make("ul", { className: "examples" });
  #head = make("div", { className: "head" });
  #draw = make("button", { type: "button", className: "draw", textContent: "Draw" });
  #rename = make("button", { type: "button", className: "rename quiet", textContent: "Rename" });
  #remove = make("button", { type: "button", className: "remove-class quiet", textContent: "Delete" });
  #files = make("input", { type: "file", className: "files", accept: "image/*", multiple: true });
  #camera = make("button", { type: "button", className: "camera", textContent: "Camera" });

  constructor(each, acts) {
    this.#acts = acts;
    this.#class = each;
    this.#head.append(this.#name, this.#rename, this.#remove);
    const add = make("div", { className: "row" }, this.#draw);
    add.append(make("label", { className: "button" }, this.#files, "Choose pictures"));
    if (camera.isThere()) add.append(this.#camera);
    this.node = make("article", { className: "class" }, this.#head, this.#count, this.#examples, add);
    this.#draw.addEventListener("click", () => acts.draw(this.#class));
    this.#rename.addEventListener("click", () => this.#edit());
    this.#remove.addEventListener("click", () => acts.removeClass(this.#class));
    this.#camera.addEventListener("click", () => acts.camera(this.#class));
    whenChosen(this.#files, (files) => acts.add(this.#class, files));
    whenDropped(this.node, (files) => acts.add(this.#class, files));
  }

  // mistakes: example -> name of the class that it would be taken for
  update(each, isTarget, mistakes) {
    this.#class = each;
    write(this.#name, each.name);
    this.#name.title = each.name;
    const count = each.examples.length;
    write(this.#count, count === 0 ? "No example yet" : count === 1 ? "1 example" : `${count} examples`);
    this.node.classList.toggle("selected", isTarget);
    this.node.setAttribute("aria-label", each.name);
    this.#draw.setAttribute("aria-pressed", String(isTarget));
    this.#draw.setAttribute("aria-label", `Draw ${each.name}`);
    this.#rename.setAttribute("aria-label", `Rename ${each.name}`);
    this.#remove.setAttribute("aria-label", `Delete ${each.name}`);
    this.#camera.setAttribute("aria-label", `Camera for ${each.name}`);
    this.#files.setAttribute("aria-label", `Choose pictures of ${each.name}`);
    this.#examples.hidden = count === 0;
    const numbered = each.examples.map((example, place) => ({ ...example, number: place + 1 }));
    keyed(
      this.#examples,
      numbered,
      (example) => example.id,
      (example) => this.#example(example),
      (node, example) => {
        node.querySelector(".remove").setAttribute("aria-label", `Remove example ${example.number} of ${each.name}`);
        const like = mistakes.get(example.id);
        node.classList.toggle("mistaken", like !== undefined);
        write(node.querySelector(".wrong-place"), "");
        if (like !== undefined) {
          const text = `looks like ${like}`;
          node.querySelector(".wrong-place").append(make("span", { className: "wrong", textContent: text, title: text }));
        }
      },
    );
  }

  #example({ id, name }) {
    const image = lookable(thumbnail(api.thumbnail(id), name, { loading: "lazy" }), api.picture(id), name);
    const remove = make("button", { type: "button", className: "remove", textContent: "×", title: "Remove" });
    const item = make("li", { className: "example" }, image, remove, make("p", { className: "wrong-place" }));
    remove.addEventListener("click", async () => {
      const near = item.nextElementSibling ?? item.previousElementSibling;
      await this.#acts.removeExample(id, this.#class);
      if (!item.isConnected) (near?.querySelector(".remove") ?? this.#draw).focus(); // the keyboard goes on from here
    });
    return item;
  }

  #edit() {
    const id = this.#class.id;
    const field = make("input", { type: "text", value: this.#class.name, maxLength: 100, required: true, "aria-label": "New name" });
    const save = make("button", { type: "submit", className: "main", textContent: "Save" });
    const cancel = make("button", { type: "button", textContent: "Cancel" });
    const form = make("form", { className: "renaming", autocomplete: "off" }, field, save, cancel);
    const done = () => {
      form.replaceWith(this.#head);
      this.#rename.focus();
    };
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (field.value.trim() === this.#class.name || (await this.#acts.rename(id, field.value))) done();
    });
    form.addEventListener("keydown", (event) => event.key === "Escape" && done());
    cancel.addEventListener("click", done);
    this.#head.replaceWith(form);
    field.select();
    field.focus();
  }
}
