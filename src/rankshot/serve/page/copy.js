// Text to the clipboard. Over plain http from another machine browsers have only the old way: what is selected.

// `shown` holds the text on the page; resolves to whether it was copied.
export async function copy(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(shown);
    return document.execCommand("copy");
  }
}
