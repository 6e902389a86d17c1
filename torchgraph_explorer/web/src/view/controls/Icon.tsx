/** Line icons of 16 pixels, in the colour of the text. */

const PATHS = {
  search: 'M7 12a5 5 0 1 0 0-10 5 5 0 0 0 0 10zM10.7 10.7 14 14',
  plus: 'M8 3v10M3 8h10',
  minus: 'M3 8h10',
  fit: 'M2 5.500V2.500h3M14 5.500V2.500h-3M2 10.500v3h3M14 10.500v3h-3',
  chevron: 'M6 3.5 10.5 8 6 12.5',
  pin: 'M8 10v4.500M4.5 10h7L10 7V2.500H6V7z',
  help: 'M6 6a2 2 0 1 1 2.8 1.800c-.5.3-.8.6-.8 1.400M8 11.800v.1',
  close: 'M4 4l8 8M12 4l-8 8',
  out: 'M8 13V4M4.5 7.5 8 4l3.5 3.5',
  auto: 'M8 2a6 6 0 1 0 0 12zM8 2a6 6 0 0 1 0 12',
  light: 'M8 5.200a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.600zM8 1v1.500M8 13.500V15M1 8h1.500M13.5 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  dark: 'M13.5 9.500A6 6 0 0 1 6.5 2.500a6 6 0 1 0 7 7z',
  previous: 'M10 3.5 5.5 8l4.5 4.5',
  next: 'M6 3.5 10.5 8 6 12.5',
  latest: 'M3 3.5 7.5 8 3 12.500M9 3.500v9',
  menu: 'M2.5 4h11M2.5 8h11M2.5 12h11',
  up: 'M3.5 10 8 5.5l4.5 4.5',
  down: 'M3.5 6 8 10.5 12.5 6',
  left: 'M2.5 3h11v10h-11zM6 3v10M11 6.2 9.200 8l1.800 1.800',
  right: 'M2.5 3h11v10h-11zM10 3v10M5 6.2 6.800 8 5 9.800',
  legend: 'M2.5 3h3v3h-3zM8 4.500h6M2.5 10h3v3h-3zM8 11.500h6',
  warning: 'M8 2 14.5 13.500h-13zM8 6.500v3.500M8 11.800v.1',
  stack: 'M8 2 14 5 8 8 2 5zM2.5 8 8 10.800 13.500 8M2.5 11 8 13.800 13.500 11',
  save: 'M8 2v8M4.5 7 8 10.500 11.500 7M2.5 13.500h11',
  curve: 'M2 13.500V2.500M2 13.500h12M4 5c2 0 2.500 5 5 5s3-1 5-1',
  options: 'M2 4.500h7M12 4.500h2M2 11.500h2M7 11.500h7M9 3v3M4 10v3',
} as const;
export type IconName = keyof typeof PATHS;

export function Icon({name}: {name: IconName}) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

interface IconButtonProps {
  icon: IconName;
  /** The button's name, also shown on hover. */
  label: string;
  onPress: () => void;
  isPressed?: boolean;
  /** It opens something, which is open. */
  isExpanded?: boolean;
  disabled?: boolean;
}

export function IconButton({icon, label, onPress, isPressed, isExpanded, disabled}: IconButtonProps) {
  return (
    <button
      type="button"
      class="icon-button"
      aria-label={label}
      aria-pressed={isPressed}
      aria-expanded={isExpanded}
      title={label}
      disabled={disabled}
      onClick={onPress}
    >
      <Icon name={icon} />
    </button>
  );
}
