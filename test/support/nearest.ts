/** A naive order of places by distance, which shares no code with the generator. */

/** The haversine of the central angle between two points in degrees: it grows with their distance. */
function haversine([lon1, lat1]: readonly number[], [lon2, lat2]: readonly number[]): number {
  const radians = Math.PI / 180;
  const half = (from: number, to: number) => Math.sin(((to - from) * radians) / 2) ** 2;
  return half(lat1!, lat2!) + Math.cos(lat1! * radians) * Math.cos(lat2! * radians) * half(lon1!, lon2!);
}

/** Returns nodes, the closest to a country first; of equally close ones, the earlier first. */
export function naiveOrder<Node extends { country: string }>(
  code: string,
  nodes: readonly Node[],
  centroids: Readonly<Record<string, readonly [number, number]>>,
): Node[] {
  const left = [...nodes];
  const order: Node[] = [];
  while (left.length > 0) {
    let best = 0;
    for (let i = 1; i < left.length; i++) {
      const closer =
        haversine(centroids[code]!, centroids[left[i]!.country]!) <
        haversine(centroids[code]!, centroids[left[best]!.country]!) - 1e-12;
      if (closer) best = i;
    }
    order.push(...left.splice(best, 1));
  }
  return order;
}
