// The two functions of Node.js that the tests call.
declare module "node:test" {
  export function test(name: string, run: () => void): void;
}
declare module "node:assert/strict" {
  export function deepEqual(actual: unknown, expected: unknown): void;
}
