/** A book on the shelf. Texts are as people typed them. */
export interface Book {
  readonly title: string;
  readonly author: string;
}

/** Return the shelf with a book at its end; a book that is there already stays where it is. */
export function withBook(shelf: readonly Book[], book: Book): readonly Book[] {
  const isThere = shelf.some(({ title, author }) => title === book.title && author === book.author);
  return isThere ? shelf : [...shelf, book];
}
