/** The gate. */

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" />
      <path class="posts" d="M8 6v20M24 6v20" />
      <path
        class="gate"
        d="M12.5 7h7a1.5 1.5 0 0 1 1.5 1.5v5a1.5 1.5 0 0 1-1.5 1.5h-7a1.5 1.5 0 0 1-1.5-1.5v-5A1.5 1.5 0 0 1 12.5 7z"
      />
      <path class="water" d="M10 21c2-2 4-2 6 0s4 2 6 0" />
    </svg>
  );
}
