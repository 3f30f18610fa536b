import { deepEqual } from "node:assert/strict";
import { test } from "node:test";

import { withBook } from "../src/books.js";

const EMMA = { title: "Emma", author: "Jane Austen" };

test("a new book comes last", () => {
  const shelf = [{ title: "Jane Eyre", author: "Charlotte Brontë" }];
  deepEqual(withBook(shelf, EMMA), [...shelf, EMMA]);
});

test("a book is on the shelf once", () => {
  deepEqual(withBook([EMMA], { ...EMMA }), [EMMA]);
});
