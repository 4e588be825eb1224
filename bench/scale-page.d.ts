export function scalePage(
  page: string,
  results: { day: string; machine: string; parts: Record<string, { name: string; value: string }[]> },
  assumptions: Record<string, { value: number; meaning: string }>,
): string;
