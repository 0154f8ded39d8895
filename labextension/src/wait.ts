/** `promise`, or `null` after some milliseconds. */
export function within<T>(promise: Promise<T>, milliseconds: number): Promise<T | null> {
  return Promise.race([promise, new Promise<null>(resolve => setTimeout(() => resolve(null), milliseconds))]);
}
