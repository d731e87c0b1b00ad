// Tables as text that spreadsheets read as text.

// A cell that begins like a formula would be computed by the program that opens the file; numbers of ours are none.
function cell(value) {
  if (typeof value === "number") return String(Number(value.toFixed(4)));
  let text = String(value ?? "");
  if (/^[=+\-@\t\r]/.test(text)) text = `'${text}`;
  return /[",\r\n']/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (rows) => rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");

export function download(name, text, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000); // the browser needs it until it has begun
}
